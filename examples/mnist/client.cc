// mnist_client: sends handwritten digits to a model server, one Predict call for each, and counts
// what comes back.
//
// An example of a C++ client, with many calls under way. The messages of clients/cpp/floe_client.h
// are those of TensorFlow Serving, so it talks to any server that speaks them.
//
//   mnist_client --target 127.0.0.1:8500 --model mnist_beginner
//       --images t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "clients/cpp/floe_client.h"

namespace {

using Clock = std::chrono::steady_clock;
using floe_client::Result;
using floe_client::Tensor;
using floe_client::Tensors;

constexpr size_t kPixels = 28 * 28;
constexpr int kClasses = 10;

struct Options {
  std::string target = "127.0.0.1:8500", model = "mnist_beginner", input = "input";
  std::string images, labels, expect;
  std::string tls_ca, tls_cert, tls_key, tls_name;  // all empty: plain text
  int concurrency = 16;
  double timeout_s = 30;
};

// ---- The data: gzipped IDX files. ----

std::string ReadGzip(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::string bytes;
  std::vector<char> buffer(1 << 20);
  int got = 0;
  while ((got = gzread(file, buffer.data(), buffer.size())) > 0) bytes.append(buffer.data(), got);
  gzclose(file);
  if (got < 0) throw std::runtime_error(path + " is damaged");
  return bytes;
}

// The items of an IDX file of bytes with `rank` dims: a header of big-endian numbers, then the
// values.
std::string ReadIdx(const std::string& path, int rank, size_t item_bytes) {
  const std::string bytes = ReadGzip(path);
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  constexpr uint32_t kUnsignedBytes = 0x800;
  if (bytes.size() < header || number(0) != (kUnsignedBytes | static_cast<uint32_t>(rank)) ||
      bytes.size() - header != number(4) * item_bytes) {
    throw std::runtime_error(path + " is not an IDX file of the expected kind");
  }
  return bytes.substr(header);
}

// ---- The calls. ----

std::string TextOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!path.empty() && !in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

floe_client::ClientOptions ClientOptionsOf(const Options& options) {
  floe_client::ClientOptions out;
  out.tls = !(options.tls_ca + options.tls_cert + options.tls_name).empty();
  out.tls_ca = TextOf(options.tls_ca);
  out.tls_cert = TextOf(options.tls_cert);
  out.tls_key = TextOf(options.tls_key);
  out.tls_name = options.tls_name;
  out.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeout_s * 1000));
  out.retries = false;  // what fails is to be seen
  return out;
}

// What came back for one digit.
struct Answer {
  int digit = -1;  // -1: the call failed
  float latency_us = 0;
};

// Keeps `concurrency` calls under way until every digit is answered.
class Sender {
 public:
  Sender(const Options& options, const std::string& images)
      : options_(options),
        images_(images),
        answers_(images.size() / kPixels),
        client_(options.target, ClientOptionsOf(options)) {}

  // Returns when all answers are there.
  void Run() {
    running_ = options_.concurrency;
    for (int i = 0; i < options_.concurrency; ++i) SendNext();
    std::unique_lock<std::mutex> lock(mutex_);
    all_done_.wait(lock, [this] { return running_ == 0; });
  }

  const std::vector<Answer>& answers() const { return answers_; }
  const std::string& first_error() const { return first_error_; }

 private:
  // Its answer starts the next call, on a thread of gRPC's.
  void SendNext() {
    const size_t index = next_.fetch_add(1);
    if (index >= answers_.size()) return Finished();
    std::vector<float> pixels(kPixels);
    const auto* from = reinterpret_cast<const uint8_t*>(images_.data()) + index * kPixels;
    std::transform(from, from + kPixels, pixels.begin(), [](uint8_t p) { return p / 255.0f; });
    const auto received = [this, index, sent = Clock::now()](const Result<Tensors>& result) {
      answers_[index].latency_us =
          std::chrono::duration<float, std::micro>(Clock::now() - sent).count();
      Received(result, &answers_[index]);
      SendNext();
    };
    client_.PredictAsync(options_.model,
                         {{options_.input, Tensor::Of<float>({1, kPixels}, pixels)}}, received);
  }

  void Received(const Result<Tensors>& result, Answer* answer) {
    if (!result.ok())
      return Failed("code " + std::to_string(result.status().error_code()) + ": " +
                    result.status().error_message());
    answer->digit = LikeliestDigit(*result);
    if (answer->digit < 0) Failed("the reply holds no output of 10 floats");
  }

  // The index of the largest of ten values, from the first output that has ten; -1 when there is
  // none.
  static int LikeliestDigit(const Tensors& outputs) {
    for (const auto& [key, tensor] : outputs) {
      const auto* const values = tensor.data<float>();
      if (values != nullptr && tensor.size() == kClasses)
        return static_cast<int>(std::max_element(values, values + kClasses) - values);
    }
    return -1;
  }

  void Failed(const std::string& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_error_.empty()) first_error_ = why;
  }

  void Finished() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) all_done_.notify_one();
  }

  const Options& options_;
  const std::string& images_;
  std::vector<Answer> answers_;  // each element written by the one call that took its index
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable all_done_;
  int running_ = 0;  // guarded by mutex_, as is first_error_
  std::string first_error_;
  floe_client::Client client_;  // ends first, and waits for what still uses the others
};

// ---- The report. ----

double Percentile(const std::vector<float>& sorted, double fraction) {
  return sorted.empty() ? 0 : sorted[static_cast<size_t>((sorted.size() - 1) * fraction)];
}

// Returns the number of failed calls.
size_t Report(const Options& options, const Sender& sender, const std::string& labels,
              double seconds) {
  const std::vector<Answer>& answers = sender.answers();
  size_t right = 0, failed = 0;
  std::vector<float> latencies;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].digit < 0) {
      ++failed;
      continue;
    }
    latencies.push_back(answers[i].latency_us);
    right += answers[i].digit == static_cast<uint8_t>(labels[i]);
  }
  std::sort(latencies.begin(), latencies.end());
  std::printf("model         %s\n", options.model.c_str());
  std::printf("calls         %zu (%d at a time)\n", answers.size(), options.concurrency);
  std::printf("failed calls  %zu\n", failed);
  std::printf("accuracy      %.4f\n", static_cast<double>(right) / answers.size());
  std::printf("requests/s    %.0f\n", answers.size() / seconds);
  std::printf("p50 latency   %.0f us\n", Percentile(latencies, 0.50));
  std::printf("p99 latency   %.0f us\n", Percentile(latencies, 0.99));
  if (failed != 0)
    std::fprintf(stderr, "mnist_client: first failure: %s\n", sender.first_error().c_str());
  return failed;
}

std::string ReadClasses(const std::string& path, size_t digits) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::string classes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (classes.size() == digits) return classes;
  throw std::runtime_error(path + " holds " + std::to_string(classes.size()) + " classes for " +
                           std::to_string(digits) + " digits");
}

// Prints where the answers differ from the expected classes, and returns how many do.
size_t Compare(const std::string& expected, const std::vector<Answer>& answers) {
  size_t different = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].digit == static_cast<uint8_t>(expected[i])) continue;
    ++different;
    std::printf("digit %zu: answered %d, expected %d\n", i, answers[i].digit,
                static_cast<uint8_t>(expected[i]));
  }
  std::printf("disagreements %zu\n", different);
  return different;
}

int Run(const Options& options) {
  const std::string images = ReadIdx(options.images, 3, kPixels);
  const std::string labels = ReadIdx(options.labels, 1, 1);
  if (images.empty() || images.size() / kPixels != labels.size()) {
    throw std::runtime_error("the files hold different numbers of images and labels, or none");
  }
  std::string expected;
  if (!options.expect.empty()) expected = ReadClasses(options.expect, labels.size());
  Sender sender(options, images);
  const Clock::time_point start = Clock::now();
  sender.Run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const size_t failed = Report(options, sender, labels, seconds);
  const size_t different = options.expect.empty() ? 0 : Compare(expected, sender.answers());
  return failed == 0 && different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Sends handwritten digits to a model server, one Predict call each, and reports accuracy and "
      "speed.");
  app.add_option("--target", options.target, "The server: HOST:PORT or unix:PATH")
      ->capture_default_str();
  app.add_option("--tls-ca", options.tls_ca, "PEM file: who signs the server's certificate");
  app.add_option("--tls-cert", options.tls_cert, "PEM file with this client's certificate");
  app.add_option("--tls-key", options.tls_key, "PEM file with its private key");
  app.add_option("--tls-name", options.tls_name, "The server's name in its certificate");
  app.add_option("--model", options.model, "Name of the model")->capture_default_str();
  app.add_option("--input", options.input, "Key of the model's input, float32 [1,784]")
      ->capture_default_str();
  app.add_option("--images", options.images, "Digits: a gzipped IDX file")->required();
  app.add_option("--labels", options.labels, "Their labels: a gzipped IDX file")->required();
  app.add_option("--concurrency", options.concurrency, "Calls under way at a time")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "Seconds to wait for each answer")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  app.add_option("--expect", options.expect,
                 "Expected classes, one byte a digit; differences are printed and fail");
  app.footer(
      "Exit codes: 0 all calls answered, 1 a call failed or an answer was not the expected one, 2 "
      "wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return Run(options);
  } catch (const std::exception& e) {
    std::cerr << "mnist_client: " << e.what() << "\n";
    return 1;
  }
}
