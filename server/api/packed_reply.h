// Replies of HTTP that are sent packed.
#pragma once

#include <memory>
#include <string_view>

#include "server/api/http.h"

namespace floe::server {

// Whether a field Accept-Encoding takes gzip.
bool TakesGzip(std::string_view accept_encoding);

// `to`, where the request does not take gzip. Else one that packs whole replies of some size, on
// the thread that sends them, unless their bytes are those that a tag names.
std::shared_ptr<HttpResponder> PackingResponder(const HttpHead& head,
                                                std::shared_ptr<HttpResponder> to);

}  // namespace floe::server
