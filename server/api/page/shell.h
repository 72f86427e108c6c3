// What all pages have, and the page by which a browser logs in.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/api/access.h"
#include "server/api/http.h"
#include "server/api/page/html.h"

namespace floe::server {

HttpReply PageReply(int status, const Html& html);
// `live`: the address of its events, "" for none. `script`: more elements of its head.
Html WholePage(const std::string& title, const std::string& live, const Html& script,
               const Html& content);
HttpReply ErrorPage(const absl::Status& status);

// For who may not see the page at head.path: why, and a form that takes a token.
HttpReply LoginPage(const HttpHead& head, const absl::Status& why);
// Of a browser that logged in: by what, and how it logs out. Else nothing.
Html WhoIsLoggedIn(const Caller& caller);
// GET and POST /page/login, and POST /page/logout.
void AddLoginRoutes(HttpRoutes* routes);

}  // namespace floe::server
