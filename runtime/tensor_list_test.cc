// TensorLists. What is expected was read off TensorFlow 2.21's raw ops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/lists.h"
#include "runtime/evaluate.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DType kFloat = DType::kFloat32;

Tensor FloatTensor(const Shape& shape, const std::vector<float>& values) {
  return Tensor::Vector(DType::kFloat32, values).Reshaped(shape);
}
Tensor Int(int32_t value) { return Tensor::Scalar(DType::kInt32, value); }
Tensor IntVector(const std::vector<int32_t>& values) {
  return Tensor::Vector(DType::kInt32, values);
}

// One op run by itself: outputs, or the error of inference or kernel.
absl::StatusOr<std::vector<Tensor>> RunOp(const std::string& op, const std::vector<Tensor>& inputs,
                                          Attrs attrs = {}, uint64_t donatable = 0) {
  if (!attrs.Has("element_dtype")) attrs.Set("element_dtype", kFloat);
  Node node;
  node.op = FindOp(op);
  node.attrs = std::move(attrs);
  std::vector<ValueInfo> infos;
  std::vector<TensorView> views;
  for (const Tensor& input : inputs) {
    infos.push_back({TensorType{input.dtype(), SymShape(input.shape())},
                     DTypeSize(input.dtype()) == 0 ? Tensor() : input,
                     {}});
    views.push_back(input.view());
  }
  FLOE_ASSIGN_OR_RETURN(const Types types, node.op->infer({node, infos}));
  node.num_outputs = static_cast<int>(types.size());
  FLOE_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, MakeKernel(node, infos, {}));
  ThreadPool pool(1);
  HeapOutputs outputs;
  FLOE_RETURN_IF_ERROR(kernel->Run({views, {}, nullptr, &pool, &outputs, donatable}));
  for (size_t k = 0; k < types.size(); ++k) {
    EXPECT_EQ(outputs.tensors[k].dtype(), types[k].dtype) << op;
    EXPECT_TRUE(!types[k].shape.concrete() || types[k].shape.At(0) == outputs.tensors[k].shape())
        << op << " promised " << types[k].shape.ToString();
  }
  return std::move(outputs.tensors);
}

Tensor Must(const std::string& op, const std::vector<Tensor>& inputs, Attrs attrs = {}) {
  auto outputs = RunOp(op, inputs, std::move(attrs));
  EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
  return outputs.ok() ? outputs->at(0) : Tensor::Scalar(kFloat, 0.f);
}

std::string Error(const std::string& op, const std::vector<Tensor>& inputs, Attrs attrs = {}) {
  return std::string(RunOp(op, inputs, std::move(attrs)).status().message());
}

std::vector<float> ToFloats(const Tensor& t) {
  return {t.as<float>(), t.as<float>() + t.elements()};
}

Attrs With(const std::string& name, AttrValue value) {
  Attrs attrs;
  attrs.Set(name, std::move(value));
  return attrs;
}

const Tensor kOpen = IntVector({-1, 2});  // element shape [?, 2]

// Three elements [?, 2] of which number 1 is [[1, 2]].
Tensor Partly() {
  const Tensor list = Must("TensorListReserve", {kOpen, Int(3)});
  return Must("TensorListSetItem", {list, Int(1), FloatTensor({1, 2}, {1, 2})});
}

TEST(TensorList, UnwrittenElementsAreZerosOfTheOthersShape) {
  const Tensor zero = Must("TensorListGetItem", {Partly(), Int(0), kOpen});
  EXPECT_EQ(zero.shape(), Shape({1, 2}));
  EXPECT_THAT(ToFloats(zero), ElementsAre(0, 0));
  for (const Tensor& declared : {kOpen, Int(-1)}) {
    const Tensor stack = Must("TensorListStack", {Partly(), declared});
    EXPECT_EQ(stack.shape(), Shape({3, 1, 2}));
    EXPECT_THAT(ToFloats(stack), ElementsAre(0, 0, 1, 2, 0, 0));
  }
  const Tensor none = Must("TensorListReserve", {kOpen, Int(3)});
  EXPECT_THAT(ToFloats(Must("TensorListGetItem", {none, Int(0), IntVector({1, 2})})),
              ElementsAre(0, 0));
  EXPECT_THAT(Error("TensorListGetItem", {none, Int(0), kOpen}), HasSubstr("only known as [?,2]"));
  EXPECT_THAT(Error("TensorListStack", {none, kOpen}), HasSubstr("none of 3 elements was written"));
}

TEST(TensorList, EmptyListsNeedTheirShape) {
  const Tensor empty = Must("TensorListReserve", {kOpen, Int(0)});
  EXPECT_EQ(Must("TensorListStack", {empty, IntVector({4, 2})}).shape(), Shape({0, 4, 2}));
  EXPECT_THAT(Error("TensorListStack", {empty, kOpen}), HasSubstr("[?,2]"));
  const Tensor no_lengths = Tensor::Allocate(DType::kInt64, Shape({0}));
  EXPECT_EQ(Must("TensorListConcatV2", {empty, kOpen, no_lengths}).shape(), Shape({0, 2}));
  EXPECT_THAT(Error("TensorListGather", {Partly(), IntVector({}), kOpen}), HasSubstr("[?,2]"));
}

TEST(TensorList, ErrorsNameIndexAndSize) {
  const Tensor item = FloatTensor({1, 2}, {1, 2});
  EXPECT_THAT(Error("TensorListGetItem", {Partly(), Int(7), kOpen}),
              HasSubstr("index 7 is outside a list of 3 elements"));
  EXPECT_THAT(Error("TensorListGetItem", {Partly(), Int(-1), kOpen}), HasSubstr("index -1"));
  EXPECT_THAT(Error("TensorListSetItem", {Partly(), Int(3), item}),
              HasSubstr("index 3 is outside a list of 3 elements"));
  EXPECT_THAT(Error("TensorListSetItem", {Partly(), Int(0), FloatTensor({1, 3}, {1, 2, 3})}),
              HasSubstr("shape [1,3], elements have [?,2]"));
  EXPECT_THAT(Error("TensorListSetItem", {Partly(), Int(0), IntVector({1, 2})}),
              HasSubstr("elements are float32"));
  EXPECT_THAT(
      Error("TensorListGetItem", {Partly(), Int(1), kOpen}, With("element_dtype", DType::kInt32)),
      HasSubstr("elements are float32, the op is for int32"));
  EXPECT_THAT(Error("TensorListGather", {Partly(), IntVector({1, 5}), kOpen}),
              HasSubstr("index 5"));
  EXPECT_THAT(Error("TensorListStack", {Partly(), kOpen}, With("num_elements", int64_t{2})),
              HasSubstr("has 3 elements, the op expects 2"));
  EXPECT_THAT(Error("TensorListReserve", {kOpen, Int(-3)}), HasSubstr("-3 elements"));
  EXPECT_THAT(Error("TensorListReserve", {kOpen, Int(INT32_MAX)}), HasSubstr("at most"));
  EXPECT_THAT(Error("TensorListResize", {Partly(), Int(-1)}), HasSubstr("-1 elements"));
  EXPECT_THAT(
      Error("TensorListGetItem", {Tensor::Allocate(DType::kVariant, Shape()), Int(0), kOpen}),
      HasSubstr("not that of a TensorList"));
  EXPECT_THAT(Error("TensorListFromTensor", {Int(1), IntVector({3})}), HasSubstr("scalar"));
  EXPECT_THAT(Error("TensorListFromTensor", {FloatTensor({2, 2}, {1, 2, 3, 4}), IntVector({3})}),
              HasSubstr("shape [2], elements have [3]"));
  const Tensor two =
      Must("TensorListSetItem", {Partly(), Int(2), FloatTensor({2, 2}, {1, 2, 3, 4})});
  EXPECT_THAT(Error("TensorListStack", {two, kOpen}), HasSubstr("element 2 of 3 has shape [2,2]"));
}

TEST(TensorList, PushAndPop) {
  const Tensor empty = Must("EmptyTensorList", {Int(-1), Int(1)});
  const Tensor one = Must("TensorListPushBack", {empty, FloatTensor({1}, {4})});
  EXPECT_EQ(*Must("TensorListLength", {one}).as<int32_t>(), 1);
  EXPECT_EQ(*Must("TensorListLength", {empty}).as<int32_t>(), 0);
  EXPECT_THAT(Error("TensorListPushBack", {one, FloatTensor({1}, {1})}),
              HasSubstr("may have 1 elements"));
  const auto popped = RunOp("TensorListPopBack", {one, Int(-1)});
  ASSERT_TRUE(popped.ok()) << popped.status();
  EXPECT_THAT(ToFloats(popped->at(1)), ElementsAre(4));
  EXPECT_EQ(*Must("TensorListLength", {popped->at(0)}).as<int32_t>(), 0);
  EXPECT_EQ(*Must("TensorListLength", {one}).as<int32_t>(), 1);
  EXPECT_THAT(Error("TensorListPopBack", {empty, Int(-1)}), HasSubstr("empty"));
}

TEST(TensorList, Sizes) {
  EXPECT_EQ(*Must("TensorListLength", {Must("TensorListResize", {Partly(), Int(9)})}).as<int32_t>(),
            9);
  EXPECT_EQ(*Must("TensorListLength", {Must("TensorListResize", {Partly(), Int(1)})}).as<int32_t>(),
            1);
  const Tensor grown = Must("TensorListSetItem", {Partly(), Int(6), FloatTensor({1, 2}, {5, 6})},
                            With("resize_if_index_out_of_bounds", true));
  EXPECT_THAT(ToFloats(Must("TensorListStack", {grown, kOpen})),
              ElementsAre(0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6));
  const Tensor shape =
      Must("TensorListElementShape", {Partly()}, With("shape_type", DType::kInt32));
  EXPECT_THAT(std::vector<int32_t>(shape.as<int32_t>(), shape.as<int32_t>() + 2),
              ElementsAre(-1, 2));
  const Tensor open = Must("TensorListElementShape", {Must("EmptyTensorList", {Int(-1), Int(-1)})},
                           With("shape_type", DType::kInt64));
  EXPECT_EQ(open.shape(), Shape());
  EXPECT_EQ(*open.as<int64_t>(), -1);
}

TEST(TensorList, GatherScatterConcatSplit) {
  EXPECT_THAT(ToFloats(Must("TensorListGather", {Partly(), IntVector({1, 0, 1}), kOpen})),
              ElementsAre(1, 2, 0, 0, 1, 2));

  const Tensor ragged =
      Must("TensorListSetItem", {Partly(), Int(2), FloatTensor({2, 2}, {1, 2, 3, 4})});
  const auto joined =
      RunOp("TensorListConcatV2",
            {ragged, kOpen, Tensor::Vector(DType::kInt64, std::vector<int64_t>{3, 9, 9})});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->at(0).shape(), Shape({6, 2}));
  EXPECT_THAT(ToFloats(joined->at(0)), ElementsAre(0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 3, 4));
  EXPECT_THAT(std::vector<int64_t>(joined->at(1).as<int64_t>(), joined->at(1).as<int64_t>() + 3),
              ElementsAre(3, 1, 2));
  EXPECT_THAT(
      Error("TensorListConcatV2", {ragged, kOpen, Tensor::Allocate(DType::kInt64, Shape({0}))}),
      HasSubstr("element 0 was never written"));

  const Tensor eight = FloatTensor({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor split = Must(
      "TensorListSplit", {eight, kOpen, Tensor::Vector(DType::kInt64, std::vector<int64_t>{1, 3})});
  EXPECT_THAT(ToFloats(Must("TensorListGetItem", {split, Int(1), Int(-1)})),
              ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Error("TensorListSplit",
                    {eight, kOpen, Tensor::Vector(DType::kInt64, std::vector<int64_t>{1, 2})}),
              HasSubstr("add up to 3"));

  const Tensor rows = FloatTensor({2, 2}, {1, 2, 3, 4});
  const auto scattered = [&](int32_t size) {
    return std::vector<Tensor>{rows, IntVector({0, 3}), IntVector({2}), Int(size)};
  };
  EXPECT_THAT(ToFloats(Must("TensorListStack",
                            {Must("TensorListScatterV2", scattered(-1)), IntVector({2})})),
              ElementsAre(1, 2, 0, 0, 0, 0, 3, 4));
  EXPECT_EQ(
      Must("TensorListStack", {Must("TensorListScatterV2", scattered(5)), IntVector({2})}).shape(),
      Shape({5, 2}));
  EXPECT_THAT(Error("TensorListScatterV2", scattered(2)),
              HasSubstr("index 3 is outside a list of 2"));

  const Tensor list = Must("TensorListFromTensor", {rows, IntVector({2})});
  const Tensor more = Must("TensorListScatterIntoExistingList",
                           {list, FloatTensor({1, 2}, {7, 8}), IntVector({3})});
  EXPECT_THAT(ToFloats(Must("TensorListStack", {more, IntVector({2})})),
              ElementsAre(1, 2, 3, 4, 0, 0, 7, 8));
}

TEST(TensorList, Strings) {
  Tensor words = Tensor::Allocate(DType::kString, Shape({2}));
  static_cast<std::string*>(words.mutable_data())[1] = "two";
  const Attrs attrs = With("element_dtype", DType::kString);
  const Tensor list =
      Must("TensorListResize",
           {Must("TensorListFromTensor", {words, IntVector({})}, attrs), Int(3)}, attrs);
  const Tensor stack = Must("TensorListStack", {list, IntVector({})}, attrs);
  EXPECT_THAT(std::vector<std::string>(stack.as<std::string>(), stack.as<std::string>() + 3),
              ElementsAre("", "two", ""));
}

TEST(TensorList, IsWrittenInPlaceOnlyByItsSingleOwner) {
  const Tensor item = FloatTensor({1, 2}, {9, 9});
  Tensor list = Partly();
  const Object* object = list.as<Handle>()->get();

  // Somebody reads it later: a copy.
  const int64_t before = copied_list_elements;
  auto next = RunOp("TensorListSetItem", {list, Int(0), item});
  ASSERT_TRUE(next.ok());
  EXPECT_NE(next->at(0).as<Handle>()->get(), object);
  EXPECT_EQ(copied_list_elements - before, 3);
  EXPECT_THAT(ToFloats(Must("TensorListStack", {list, kOpen})), ElementsAre(0, 0, 1, 2, 0, 0));

  // Nobody does, but a second handle exists: a copy.
  const Handle second = *list.as<Handle>();
  next = RunOp("TensorListSetItem", {list, Int(0), item}, {}, 1);
  EXPECT_NE(next->at(0).as<Handle>()->get(), object);
  EXPECT_THAT(ToFloats(Must("TensorListStack", {list, kOpen})), ElementsAre(0, 0, 1, 2, 0, 0));
}

TEST(TensorList, TakesOverAListNobodyElseSees) {
  const Tensor item = FloatTensor({1, 2}, {9, 9});
  const Tensor list = Partly();
  const Object* object = list.as<Handle>()->get();
  const int64_t before = copied_list_elements;
  const auto next = RunOp("TensorListSetItem", {list, Int(0), item}, {}, 1);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->at(0).as<Handle>()->get(), object);
  EXPECT_EQ(copied_list_elements, before);
  EXPECT_THAT(ToFloats(Must("TensorListStack", {next->at(0), kOpen})),
              ElementsAre(9, 9, 1, 2, 0, 0));
}

}  // namespace
}  // namespace floe
