#include "model/import/keras/hdf5_file.h"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace floe::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The bytes of a file that `write` fills.
std::shared_ptr<std::string> FileOf(const std::function<void(hid_t)>& write) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, 0);
  const hid_t file = H5Fcreate("unused.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  write(file);
  H5Fflush(file, H5F_SCOPE_LOCAL);
  auto bytes = std::make_shared<std::string>();
  bytes->resize(static_cast<size_t>(H5Fget_file_image(file, nullptr, 0)));
  H5Fget_file_image(file, bytes->data(), bytes->size());
  H5Fclose(file);
  H5Pclose(access);
  return bytes;
}

// A dataset of floats with this creation list (closed here) and, where given, numbers.
void AddFloats(hid_t file, const char* name, hsize_t size, hid_t creation, const float* values) {
  const hid_t space = H5Screate_simple(1, &size, nullptr);
  const hid_t data =
      H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  if (values != nullptr) H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Dclose(data);
  H5Sclose(space);
  if (creation != H5P_DEFAULT) H5Pclose(creation);
}

absl::Status ErrorOf(const std::shared_ptr<std::string>& bytes, const std::string& path) {
  const auto file = Hdf5File::Open(*bytes, bytes);
  return file.ok() ? (*file)->Read(path).status() : file.status();
}

TEST(Hdf5File, ReadsArraysNamesAndAttributes) {
  const float values[] = {1, 2, 3};
  const auto bytes = FileOf([&](hid_t file) {
    const hid_t group = H5Gcreate2(file, "layers", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    AddFloats(group, "w", 3, H5P_DEFAULT, values);
    H5Gclose(group);
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 5);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t note = H5Acreate_by_name(file, "layers", "note", type, space, H5P_DEFAULT,
                                         H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(note, type, "plain");
    H5Aclose(note);
    H5Sclose(space);
    H5Tclose(type);
  });
  const auto file = Hdf5File::Open(*bytes, bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Has("layers/w"));
  EXPECT_FALSE((*file)->Has("layers/v"));
  EXPECT_THAT((*file)->Names("layers"), ElementsAre("w"));
  EXPECT_THAT(*(*file)->Strings("layers", "note"), ElementsAre("plain"));
  EXPECT_TRUE((*file)->Strings("layers", "other")->empty());
  const auto tensor = (*file)->Read("layers/w");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->dtype(), DType::kFloat32);
  EXPECT_EQ(tensor->shape(), Shape({3}));
  EXPECT_EQ(tensor->as<float>()[2], 3);
  EXPECT_EQ((*file)->Read("layers").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*file)->Read("layers/v").status().code(), absl::StatusCode::kNotFound);
}

TEST(Hdf5File, ReadsCompressedArrays) {
  const std::vector<float> values(1000, 2.5F);
  const auto bytes = FileOf([&](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 100;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_deflate(creation, 6);
    AddFloats(file, "w", values.size(), creation, values.data());
  });
  const auto file = Hdf5File::Open(*bytes, bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tensor = (*file)->Read("w");
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->as<float>()[999], 2.5F);
}

TEST(Hdf5File, RefusesLinksOutOfTheFile) {
  const auto bytes = FileOf([](hid_t file) {
    H5Lcreate_external("/etc/passwd", "/x", file, "out", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/out", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(ErrorOf(bytes, "out").message(), HasSubstr("an external link"));
  EXPECT_THAT(ErrorOf(bytes, "soft").message(), HasSubstr("a soft link"));
}

TEST(Hdf5File, RefusesExternalStorage) {
  const auto bytes = FileOf([](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/passwd", 0, 12);
    AddFloats(file, "w", 3, creation, nullptr);
  });
  EXPECT_THAT(ErrorOf(bytes, "w").message(), HasSubstr("external storage"));
}

TEST(Hdf5File, RefusesVirtualDatasets) {
  const auto bytes = FileOf([](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t size = 3;
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    H5Pset_virtual(creation, space, "/tmp/other.h5", "/w", space);
    H5Sclose(space);
    AddFloats(file, "w", 3, creation, nullptr);
  });
  EXPECT_THAT(ErrorOf(bytes, "w").message(), HasSubstr("a virtual dataset"));
}

TEST(Hdf5File, RefusesSizesThatTheFileHasNoBytesFor) {
  const auto bytes = FileOf([](hid_t file) {
    AddFloats(file, "never written", hsize_t{1} << 33, H5P_DEFAULT, nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 1000;
    H5Pset_chunk(creation, 1, &chunk);
    AddFloats(file, "no chunks", hsize_t{1} << 33, creation, nullptr);
  });
  EXPECT_THAT(ErrorOf(bytes, "never written").message(), HasSubstr("it declares"));
  EXPECT_THAT(ErrorOf(bytes, "no chunks").message(), HasSubstr("it declares"));
}

TEST(Hdf5File, RefusesWhatIsCutShort) {
  const std::vector<float> values(50'000, 1);
  const auto bytes =
      FileOf([&](hid_t file) { AddFloats(file, "w", values.size(), H5P_DEFAULT, values.data()); });
  for (size_t size = 0; size < bytes->size(); size += bytes->size() / 50) {
    const auto cut = std::make_shared<std::string>(bytes->substr(0, size));
    EXPECT_FALSE(ErrorOf(cut, "w").ok()) << size;
  }
}

}  // namespace
}  // namespace floe::keras
