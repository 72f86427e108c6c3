// Holds text back up to the end of a line, so that no character is escaped in halves.
#include "base/printable_stream.h"

#include <limits>
#include <string_view>

#include "base/quoted.h"

namespace floe {

bool PrintableStream::Buffer::WriteLines(size_t size) {
  to_ << Printable(std::string_view(held_).substr(0, size), std::numeric_limits<size_t>::max());
  held_.erase(0, size);
  return to_.good();
}

PrintableStream::Buffer::int_type PrintableStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PrintableStream::Buffer::xsputn(const char* text, std::streamsize size) {
  held_.append(text, static_cast<size_t>(size));
  const size_t end = held_.rfind('\n');
  return end == std::string::npos || WriteLines(end + 1) ? size : 0;
}

int PrintableStream::Buffer::sync() {
  const bool written = WriteLines(held_.size());
  to_.flush();
  return written && to_.good() ? 0 : -1;
}

}  // namespace floe
