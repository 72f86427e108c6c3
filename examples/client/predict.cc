// Asks a served MNIST model about the eight digits of a file, with floe's client of one header.
// docs/clients.md has the command that compiles it.
//
//   predict 127.0.0.1:8500 mnist_beginner examples/mnist/data/digits.npy
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include "floe_client.h"

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: predict HOST:PORT MODEL DIGITS.npy\n", 2;
  std::ifstream file(argv[3], std::ios::binary);
  const std::string npy((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr size_t kHeader = 128, kPixels = 784;  // of a file that NumPy wrote
  if (npy.size() <= kHeader) return std::cerr << "cannot read " << argv[3] << "\n", 2;
  const auto rows = static_cast<int64_t>((npy.size() - kHeader) / (kPixels * sizeof(float)));

  floe_client::Client client(argv[1]);
  const auto images = floe_client::Tensor::Raw(floe_client::DType::kFloat32, {rows, kPixels},
                                               npy.data() + kHeader, npy.size() - kHeader);
  const auto answer = client.Predict(argv[2], {{"input", images}});
  if (!answer.ok()) return std::cerr << answer.status().error_message() << "\n", 1;
  const float* softmax = answer->at("softmax").data<float>();
  for (int64_t row = 0; row < rows; ++row, softmax += 10)
    std::cout << std::max_element(softmax, softmax + 10) - softmax << "\n";
}
