// Html: the text of a page, in which everything but this program's own markup is escaped.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace floe::server {

// Markup that stands in the source: nothing else can be made one.
class Markup {
 public:
  consteval Markup(const char* text) : text_(text) {}  // NOLINT: literals read as markup
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// For text, and for values of attributes in double quotes. What is neither printable nor UTF-8 is
// shown as escapes.
std::string HtmlEscaped(std::string_view text);
// A segment of a URL's path: all but letters, digits, '-', '.', '_' and '~' as "%20".
std::string UrlSegment(std::string_view text);

// Threading: one thread.
class Html {
 public:
  Html& Add(Markup markup) {
    text_ += markup.text();
    return *this;
  }
  Html& Text(std::string_view text) {
    text_ += HtmlEscaped(text);
    return *this;
  }
  Html& Part(const Html& part) {
    text_ += part.text_;
    return *this;
  }
  // <td data-label="LABEL">TEXT</td>: narrow screens show the label.
  Html& Cell(Markup label, std::string_view text);
  // The same of a number, which is set to the right.
  Html& Number(Markup label, std::string_view text);
  // <dt>NAME</dt><dd>TEXT</dd>
  Html& Fact(Markup name, std::string_view text);

  // A file of this program, with each "{{name}}" replaced by the text.
  Html& Filled(std::string_view file,
               const std::vector<std::pair<std::string, std::string>>& texts);
  // Replaces "{{name}}" in what there is by the part.
  Html& Put(std::string_view name, const Html& part);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace floe::server
