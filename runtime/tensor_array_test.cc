// TensorArrays. What is expected was read off TensorFlow 2.21's raw ops in a v1 session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/lists.h"
#include "runtime/evaluate.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor FloatItem(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Vector(DType::kFloat32, values).Reshaped(shape);
}
Tensor IntItem(int32_t value) { return Tensor::Scalar(DType::kInt32, value); }
Tensor IntItems(const std::vector<int32_t>& values) {
  return Tensor::Vector(DType::kInt32, values);
}
Tensor Int64s(const std::vector<int64_t>& values) { return Tensor::Vector(DType::kInt64, values); }
std::vector<float> ItemFloats(const Tensor& t) {
  return {t.as<float>(), t.as<float>() + t.elements()};
}

// An array of a v1 graph, driven op by op.
class Array {
 public:
  explicit Array(int size, Attrs attrs = {}, DType dtype = DType::kFloat32) : dtype_(dtype) {
    attrs.Set("dtype", dtype);
    auto made = Run("TensorArrayV3", {IntItem(size)}, attrs);
    EXPECT_TRUE(made.ok()) << made.status();
    handle_ = made->at(0);
    flow_ = made->at(1);
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::string& op, const std::vector<Tensor>& inputs,
                                          Attrs attrs = {}) const {
    if (!attrs.Has("dtype")) attrs.Set("dtype", dtype_);
    Node node;
    node.op = FindOp(op);
    node.attrs = std::move(attrs);
    std::vector<ValueInfo> infos;
    for (const Tensor& input : inputs)
      infos.push_back({TensorType{input.dtype(), SymShape(input.shape())}, {}, {}});
    FLOE_ASSIGN_OR_RETURN(const Types types, node.op->infer({node, infos}));
    return EvaluateNode(node, inputs, types, {});
  }

  absl::Status Write(int index, const Tensor& value) {
    return Run("TensorArrayWriteV3", {handle_, IntItem(index), value, flow_}).status();
  }
  absl::Status Scatter(const std::vector<int32_t>& indices, const Tensor& value) {
    return Run("TensorArrayScatterV3", {handle_, IntItems(indices), value, flow_}).status();
  }
  absl::Status Split(const Tensor& value, const std::vector<int64_t>& lengths) {
    return Run("TensorArraySplitV3", {handle_, value, Int64s(lengths), flow_}).status();
  }
  absl::StatusOr<Tensor> Read(int index) const {
    return First(Run("TensorArrayReadV3", {handle_, IntItem(index), flow_}));
  }
  absl::StatusOr<Tensor> Gather(const std::vector<int32_t>& indices, Attrs attrs = {}) const {
    return First(Run("TensorArrayGatherV3", {handle_, IntItems(indices), flow_}, std::move(attrs)));
  }
  absl::StatusOr<std::vector<Tensor>> Concat() const {
    return Run("TensorArrayConcatV3", {handle_, flow_});
  }
  int Size() const { return *Run("TensorArraySizeV3", {handle_, flow_})->at(0).as<int32_t>(); }

 private:
  static absl::StatusOr<Tensor> First(absl::StatusOr<std::vector<Tensor>> outputs) {
    if (!outputs.ok()) return outputs.status();
    return outputs->at(0);
  }
  DType dtype_;
  Tensor handle_, flow_;
};

Attrs WithAttr(const std::string& name, AttrValue value) {
  Attrs attrs;
  attrs.Set(name, std::move(value));
  return attrs;
}
const Tensor kTwo = FloatItem({2}, {1, 2});

TEST(TensorArray, ReadsWhatWasWritten) {
  Array array(3);
  ASSERT_TRUE(array.Write(1, kTwo).ok());
  const auto read = array.Read(1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(ItemFloats(*read), ElementsAre(1, 2));
  EXPECT_THAT(std::string(array.Read(1).status().message()),
              HasSubstr("element 1 of the array was read before"));
  EXPECT_THAT(std::string(array.Read(0).status().message()),
              HasSubstr("element 0 of an array of 3 was never written"));
  EXPECT_THAT(std::string(array.Read(3).status().message()),
              HasSubstr("index 3 is outside an array of 3"));
}

TEST(TensorArray, KeepsElementsThatAreNotClearedByReading) {
  Array array(3, WithAttr("clear_after_read", false));
  ASSERT_TRUE(array.Write(1, kTwo).ok());
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(array.Read(1).ok());
  const auto twice = array.Gather({1, 1});
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_THAT(ItemFloats(*twice), ElementsAre(1, 2, 1, 2));
}

TEST(TensorArray, UnwrittenElementsOfKnownShapeAreZeros) {
  Array array(3, WithAttr("element_shape", SymShape({2})));
  ASSERT_TRUE(array.Write(1, kTwo).ok());
  const auto both = array.Gather({0, 1});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(ItemFloats(*both), ElementsAre(0, 0, 1, 2));
}

TEST(TensorArray, RefusesWhatDoesNotFit) {
  Array array(3, WithAttr("element_shape", SymShape({3})));
  EXPECT_THAT(std::string(array.Write(1, kTwo).message()),
              HasSubstr("shape [2], elements have [3]"));
  EXPECT_THAT(std::string(Array(3, {}, DType::kInt32).Write(1, kTwo).message()),
              HasSubstr("elements are int32"));
  Array open(3);
  EXPECT_THAT(std::string(open.Write(5, kTwo).message()),
              HasSubstr("index 5 is outside an array of 3"));
  EXPECT_THAT(std::string(open.Write(-1, kTwo).message()), HasSubstr("index -1"));
  ASSERT_TRUE(open.Write(0, kTwo).ok());
  EXPECT_THAT(std::string(open.Write(0, kTwo).message()),
              HasSubstr("element 0 of the array was written before"));
  ASSERT_TRUE(open.Write(1, FloatItem({3}, {1, 2, 3})).ok());
  EXPECT_THAT(std::string(open.Gather({0, 1}).status().message()),
              HasSubstr("element 1 of 2 has shape [3]"));
  Array same(3, WithAttr("identical_element_shapes", true));
  ASSERT_TRUE(same.Write(0, kTwo).ok());
  EXPECT_THAT(std::string(same.Write(1, FloatItem({3}, {1, 2, 3})).message()),
              HasSubstr("shape [3], elements have [2]"));
  EXPECT_THAT(std::string(same.Run("TensorArrayV3", {IntItem(-2)}).status().message()),
              HasSubstr("-2 elements"));
  EXPECT_THAT(
      std::string(same.Run("TensorArraySizeV3", {Tensor::Allocate(DType::kResource, Shape()), kTwo})
                      .status()
                      .message()),
      HasSubstr("not that of a TensorArray"));
}

TEST(TensorArray, GrowsWhereItMay) {
  Array array(3, WithAttr("dynamic_size", true));
  ASSERT_TRUE(array.Write(5, kTwo).ok());
  EXPECT_EQ(array.Size(), 6);
}

TEST(TensorArray, SplitAndConcat) {
  const Tensor four = FloatItem({4, 1}, {1, 2, 3, 4});
  Array array(3);
  ASSERT_TRUE(array.Split(four, {1, 0, 3}).ok());
  const auto joined = array.Concat();
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->at(0).shape(), Shape({4, 1}));
  EXPECT_THAT(ItemFloats(joined->at(0)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(std::vector<int64_t>(joined->at(1).as<int64_t>(), joined->at(1).as<int64_t>() + 3),
              ElementsAre(1, 0, 3));
  EXPECT_THAT(std::string(Array(2).Split(four, {1, 0, 3}).message()),
              HasSubstr("3 lengths for an array of 2"));
  Array growing(2, WithAttr("dynamic_size", true));
  ASSERT_TRUE(growing.Split(four, {1, 0, 3}).ok());
  EXPECT_EQ(growing.Size(), 3);
}

TEST(TensorArray, Scatter) {
  const Tensor rows = FloatItem({2, 1}, {1, 2});
  Array array(3);
  ASSERT_TRUE(array.Scatter({0, 2}, rows).ok());
  EXPECT_THAT(ItemFloats(*array.Read(2)), ElementsAre(2));
  EXPECT_FALSE(array.Concat().ok());  // element 1 was never written
  EXPECT_THAT(std::string(Array(3).Scatter({0, 0}, rows).message()), HasSubstr("written before"));
  EXPECT_THAT(std::string(Array(3).Scatter({0}, rows).message()), HasSubstr("1 indices"));
}

}  // namespace
}  // namespace floe
