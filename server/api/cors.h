// Cors: which other sites' pages may call this server from a browser.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/api/http.h"

namespace floe::server {

// Answers to pages of the sites that are allowed say so; a browser hides all others from the page.
// Credentials that the browser keeps are never allowed: a page sends its token itself.
// Threading: immutable.
class Cors {
 public:
  // "https://app.example", or "*" for all.
  explicit Cors(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  // `to`, with the fields that a browser looks for where the request's page is of a site that is
  // allowed.
  std::shared_ptr<HttpResponder> Around(const HttpHead& head,
                                        std::shared_ptr<HttpResponder> to) const;
  // Of an answer to OPTIONS: what such a page may send, by the methods of the path.
  void AddPreflight(const HttpHead& head, const std::string& methods, HttpFields* fields) const;

 private:
  // The value of Access-Control-Allow-Origin; "": the request has no origin, or one of another
  // site.
  std::string AllowedFor(const HttpHead& head) const;

  const std::vector<std::string> origins_;
};

}  // namespace floe::server
