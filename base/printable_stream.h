// PrintableStream: text output in which no name can steer a terminal.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace floe {

// Writes to another stream what Printable (base/quoted.h) makes of the text: at each line end, each
// flush and the end. `to` outlives it. Threading: one thread at a time.
class PrintableStream : public std::ostream {
 public:
  explicit PrintableStream(std::ostream& to) : std::ostream(&buffer_), buffer_(to) {}
  ~PrintableStream() override { flush(); }
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(std::ostream& to) : to_(to) {}

   private:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;
    bool WriteLines(size_t size);

    std::ostream& to_;
    std::string held_;  // the line that is not complete
  };
  Buffer buffer_;
};

}  // namespace floe
