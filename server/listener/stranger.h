// Connections that do not speak HTTP/2, which get an answer instead of a silent end.
#pragma once

#include <string>
#include <string_view>

namespace floe::server {

// What those who speak something else are told of: "HTTP/1", "TLS"; "": it is HTTP/2 or none of
// these. `first`: what has arrived of a connection.
std::string_view StrangerOf(std::string_view first);

// A reply in the stranger's protocol that says what is spoken here; "": it has none for that.
std::string AnswerTo(std::string_view stranger);

}  // namespace floe::server
