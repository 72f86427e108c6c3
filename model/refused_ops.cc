#include "model/refused_ops.h"

#include <string_view>

#include "model/op_def.h"

namespace floe {
namespace {

constexpr RefusedOps kRefused[] = {
    {"Decision forests",
     "forests of TensorFlow Decision Forests are run by a library of their own; serve them "
     "with it",
     "SimpleML* Yggdrasil* DecisionForest*"},
    {"Boosted trees of estimators",
     "TensorFlow 2.21 has no kernels for boosted tree estimators either; train the "
     "model again with another library",
     "BoostedTrees* IsBoostedTrees*"},
    {"Batching inside the graph",
     "floe puts requests into batches itself; export the model without the batching op",
     "Batch BatchFunction Unbatch UnbatchGrad"},
    {"Python inside the graph",
     "it calls Python code, which is not in the file; write that part with TensorFlow's ops, or do "
     "it before the request",
     "PyFunc PyFuncStateless EagerPyFunc"},
    {"Assigning while serving",
     "a model is read-only while it serves; export an inference graph that assigns nothing",
     "Assign* *ScatterUpdate Scatter* ResourceScatter* ResourceStridedSliceAssign "
     "StridedSliceAssign CountUpTo ResourceCountUpTo LookupTableRemoveV2 "
     "TensorStridedSliceUpdate Inplace* TemporaryVariable DestroyTemporaryVariable "
     "DestroyResourceOp ParallelConcat StoreMinibatchStatisticsInFdo"},
    {"Variables", "a frozen graph has constants in their place; point floed at the SavedModel",
     "Variable VariableV2 VarHandleOp ReadVariableOp VarIsInitializedOp "
     "IsVariableInitialized VariableShape ResourceGather ResourceGatherNd ReadVariableXla* "
     "DisableCopyOnRead ImmutableConst RefIdentity RefSelect"},
    {"Training", "it is a step of training; export the inference graph",
     "*Grad *GradV2 *GradV3 *GradGrad* *Gradient *Backprop *BackpropV2 *BackpropV3 "
     "*BackpropFilter* *Gradients Apply* ResourceApply* ResourceSparseApply* SparseApply* "
     "*Accumulator* Sdca* *CandidateSampler ComputeAccidentalHits CTCLoss* SymbolicGradient "
     "*GradWithArgmax *GradWithShape *GradientRefIdentity IgammaGradA "
     "KMC2ChainInitialization KmeansPlusPlusInitialization CropAndResizeGrad* "
     "FractionalAvgPool FractionalMaxPool DebugGradientIdentity Dilation2DBackpropInput"},
    {"Saving, restoring and files",
     "a model reads and writes no files while it serves; variables are loaded with the "
     "model",
     "Save SaveV2 SaveSlices Restore RestoreV2 RestoreSlice ReadFile WriteFile "
     "MatchingFiles MergeV2Checkpoints ShardedFile* *Reader *ReaderV2 Reader* "
     "LoadAndRemapMatrix GenerateVocabRemapping DistributedSave FileSystemSetConfiguration "
     "RecordInput LookupTableExport* InitializeTableFromDataset"},
    {"Input pipelines",
     "input pipelines belong to training; export a signature that takes its tensors as "
     "inputs",
     "*Dataset *DatasetV2 *DatasetV3 *DatasetV4 Experimental* *Iterator *IteratorV2 "
     "*IteratorV3 Iterator* *Dataset* Optional* MapDefun CompressElement UncompressElement "
     "*MemoryCache *SeedGenerator GetOptions GetElementAtIndex StatsAggregator* "
     "ThreadPoolHandle DummyIterationCounter MultiDeviceIterator* OneShotIterator"},
    {"Queues, barriers and stages",
     "queues feed training; export a signature that takes its tensors as inputs",
     "*Queue *QueueV2 Queue* Barrier* Stage* Unstage MapStage MapUnstage* MapPeek MapSize "
     "MapClear MapIncompleteSize OrderedMap* Stack StackV2 StackPop* StackPush* StackClose* "
     "Mutex* ConsumeMutexLock GetSessionHandle* GetSessionTensor DeleteSessionTensor "
     "AddManySparseToTensorsMap AddSparseToTensorsMap TakeManySparseFromTensorsMap"},
    {"Programs of JAX",
     "it holds a program of XLA (StableHLO), as jax2tf's native serialization writes it, and no "
     "ops of TensorFlow; serve the .keras file of a Keras model, or convert again with "
     "jax2tf.convert(..., native_serialization=False) in a version of JAX that still has it",
     "XlaCallModule"},
    {"Several devices or machines",
     "it is for models spread over devices or machines; export the model for one",
     "Collective* Nccl* AllToAll CrossReplicaSum Send Recv RemoteCall SyncDevice "
     "GlobalIterId WorkerHeartbeat DeviceIndex *TPU* Infeed* Outfeed* Prelinearize* Xla* "
     "*XlaConcatND *SparseCore* *MinibatchSplits* *MinibatchesInCsr* ConvertToCooTensor "
     "ComputeBatchSize"},
    {"Summaries and debugging",
     "it writes what TensorBoard or a debugger reads; export the graph without it",
     "*Summary *SummaryV2 SummaryWriter *SummaryWriter Write*Summary ImportEvent "
     "CreateSummary* Debug* Copy CopyHost CheckPinned Abort Timestamp *SummaryDbWriter"},
    {"cuDNN's recurrent layers",
     "weights are packed for a GPU's library; build the model with layers that run on CPUs, such "
     "as Keras' LSTM and GRU, load the weights there and export it",
     "CudnnRNN*"},
    {"Rarer image formats", "convert images to JPEG, PNG, GIF or BMP before they are sent",
     "DecodeWebP DecodeJxl"},
    {"Protocol buffers by descriptor, JSON, older sequence examples",
     "parse the message before it is sent, or export with ParseExampleV2 or "
     "ParseSequenceExampleV2",
     "DecodeProtoV2 EncodeProto DecodeJSONExample ParseSequenceExample "
     "ParseSingleSequenceExample"},
    {"TensorFlow Text",
     "ops of tensorflow_text are a library of their own; tokenise before the request, and export "
     "the model without the tokeniser",
     "*Tokenize* *Detokenize* Sentencepiece* NormalizeUTF8* CaseFoldUTF8* FastWordpiece* "
     "SentenceFragments* RegexSplitWithOffsets ConstrainedSequence* TFText* *TFText* "
     "RougeL* MstParse* PhraseTokenize* ByteSplit* TrimPhrase* RoundRobin* "
     "OffsetsFromStarts* *BertNormalize* FindSourceOffsets MstSolver*"},
    {"oneDNN's quantised kernels",
     "TensorFlow's optimiser for Intel CPUs put it in; export the graph before that, with "
     "fake-quantised or float weights",
     "QuantizedConv2D* QuantizedDepthwiseConv2D* QuantizedMatMulWithBias* QuantizedReluX "
     "RequantizePerChannel RequantizationRangePerChannel _Mkl* _OneDnn* _Fused*"},
    {"Uniform quantisation", "export the model in float, or with fake quantisation", "Uniform*"},
    {"Sparse matrices in CSR form", "use SparseTensorDenseMatMul, or a dense matrix",
     "*CSR* SparseMatrix*"},
    {"Maps of tensors", "use a table, or pass the tensors apart", "TensorMap* EmptyTensorMap"},
    {"Custom containers of tensors", "export the signature with plain tensors",
     "CompositeTensorVariant* *SparseToVariant*"},
    {"Sparse tensors as strings or variants",
     "input pipelines pass them on so; export the signature with plain tensors",
     "SerializeSparse SerializeManySparse DeserializeSparse DeserializeManySparse"},
    {"Names of TensorFlow's first versions",
     "TensorFlow has newer ops in their place; load the graph there and save it again",
     "BatchCholesky BatchFFT* BatchIFFT* BatchMatrix* BatchSelfAdjointEig* BatchSvd "
     "SelfAdjointEig TensorArray* PlaceholderV2 AdjustContrast RandomCrop TopK "
     "BatchNormWithGlobalNormalization QuantizeAndDequantize QuantizeAndDequantizeV4 "
     "NonMaxSuppression SparseMatMul Reverse SpaceToBatch BatchToSpace MaxPoolV2 "
     "Conv3DBackpropInput"},
    {"Random numbers of rarer kinds",
     "draw them outside and send them, or use RandomUniform, RandomStandardNormal or their "
     "stateless forms",
     "RandomGamma RandomPoisson* ParameterizedTruncatedNormal StatelessShuffle "
     "StatefulRandomBinomial StatefulStandardNormal* StatefulTruncatedNormal "
     "StatefulUniform* NonDeterministicInts Rng* RandomIndexShuffle SobolSample"},
    {"Tables without a name in the file",
     "use a StaticHashTable or a StaticVocabularyTable, whose content is saved",
     "AnonymousHashTable AnonymousMutable* MutableDenseHashTable*"},
    {"Convolutions and patches of rarer kinds",
     "it has no kernel; use Conv2D, Conv3D, DepthwiseConv2dNative, MaxPool or "
     "ExtractImagePatches",
     "Conv Conv2DBackpropInputV2 DepthwiseConv2dNativeBackpropInput "
     "FusedPadConv2D FusedResizeAndPadConv2D ExtractVolumePatches"},
    {"Glimpses of images",
     "what is outside an image is filled with random numbers; use CropAndResize, or Pad and Slice",
     "ExtractGlimpse*"},
    {"Functions of matrices",
     "no model that is served has it, and it is costly to build; compute it before the request",
     "MatrixExponential MatrixLogarithm MatrixSquareRoot"},
    {"Mathematics of rarer kinds",
     "it has no kernel; compute it before the request, or from ops that are supported",
     "IsotonicRegression NearestNeighbors Fact"},
    {"Fourier transforms of any number of dims",
     "TensorFlow has no kernel of it for CPUs either; use FFT, FFT2D or FFT3D and their kin",
     "FFTND IFFTND RFFTND IRFFTND"},
    {"Segments of a stated number",
     "TensorFlow has no kernel of it for CPUs either; use SegmentSum or UnsortedSegmentSum and "
     "their kin",
     "SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2"},
    {"Proposals of boxes",
     "TensorFlow has no kernel of it for CPUs either; use NonMaxSuppressionV5 or "
     "CombinedNonMaxSuppression",
     "GenerateBoundingBoxProposals"},
    {"Strings, sets and sparse tensors of rarer kinds",
     "it has no kernel; do this before the request",
     "EditDistance SparseReduceMaxSparse SparseReduceSumSparse EncodeWav"},
    {"Augmentation of images", "it distorts images to train on; export the inference graph",
     "StatelessSampleDistortedBoundingBox"},
    {"Parts of other ops",
     "TensorFlow makes it while it runs or differentiates a graph; export the graph again",
     "ConcatOffset BroadcastGradientArgs FakeParam For ToBool WindowOp Empty "
     "TensorListConcatLists TensorListPushBackBatch"},
    {"TensorFlow Lite, TensorRT and other runtimes",
     "it runs a part of the graph in another runtime; export the graph before that "
     "conversion",
     "TRTEngineOp TFLite* TfLite* Neuron* *TensorRT*"},
};

bool Matches(std::string_view pattern, std::string_view name) {
  const bool front = pattern.starts_with('*'), back = pattern.size() > 1 && pattern.ends_with('*');
  if (front) pattern.remove_prefix(1);
  if (back) pattern.remove_suffix(1);
  if (front && back) return name.find(pattern) != std::string_view::npos;
  if (front) return name.ends_with(pattern);
  return back ? name.starts_with(pattern) : name == pattern;
}

}  // namespace

absl::Span<const RefusedOps> AllRefusedOps() { return kRefused; }

std::vector<std::string> NamesOf(const RefusedOps& group) {
  std::vector<std::string> names;
  std::string_view left = group.names;
  while (!left.empty()) {
    const size_t end = left.find(' ');
    names.emplace_back(left.substr(0, end));
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  return names;
}

const RefusedOps* FindRefusedOp(const std::string& tensorflow_op) {
  if (FindTensorFlowOp(tensorflow_op) != nullptr) return nullptr;
  for (const RefusedOps& group : AllRefusedOps()) {
    for (const std::string& name : NamesOf(group)) {
      if (Matches(name, tensorflow_op)) return &group;
    }
  }
  return nullptr;
}

}  // namespace floe
