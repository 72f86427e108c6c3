#include "server/api/page/html.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/quoted.h"

namespace floe::server {
namespace {

constexpr size_t kMostTextBytes = size_t{4} << 20;

}  // namespace

std::string HtmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text, kMostTextBytes)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string UrlSegment(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF", kMarks = "-._~";
  std::string segment;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || kMarks.find(c) != std::string_view::npos) {
      segment += c;
    } else {
      segment += '%';
      segment += kDigits[byte >> 4];
      segment += kDigits[byte & 15];
    }
  }
  return segment;
}

Html& Html::Cell(Markup label, std::string_view text) {
  return Add("<td data-label=\"").Add(label).Add("\">").Text(text).Add("</td>");
}

Html& Html::Number(Markup label, std::string_view text) {
  return Add("<td class=\"number\" data-label=\"").Add(label).Add("\">").Text(text).Add("</td>");
}

Html& Html::Fact(Markup name, std::string_view text) {
  return Add("<div><dt>").Add(name).Add("</dt><dd>").Text(text).Add("</dd></div>");
}

Html& Html::Filled(std::string_view file,
                   const std::vector<std::pair<std::string, std::string>>& texts) {
  std::vector<std::pair<std::string, std::string>> values;
  values.reserve(texts.size());
  for (const auto& [name, text] : texts)
    values.emplace_back(absl::StrCat("{{", name, "}}"), HtmlEscaped(text));
  text_ += absl::StrReplaceAll(std::string(file), values);
  return *this;
}

Html& Html::Put(std::string_view name, const Html& part) {
  const std::string mark = absl::StrCat("{{", std::string(name), "}}");
  if (const size_t at = text_.find(mark); at != std::string::npos)
    text_.replace(at, mark.size(), part.text_);
  return *this;
}

}  // namespace floe::server
