"""Sample calls of TensorFlow's public functions for trace_tf_ops.py: of each function an expression over ARGUMENTS."""

import numpy as np
import tensorflow as tf

MODULES = {
    "image": tf.image,
    "strings": tf.strings,
    "signal": tf.signal,
    "sparse": tf.sparse,
    "ragged": tf.ragged,
    "linalg": tf.linalg,
    "math": tf.math,
    "sets": tf.sets,
    "io": tf.io,
    "keras.layers": tf.keras.layers,
}

# The inputs of the traced function.
ARGUMENTS = {
    "image": np.ones((9, 8, 3), np.float32),
    "images": np.ones((2, 200, 190, 3), np.float32),
    "grey": np.ones((9, 8, 1), np.float32),
    "bytes8": np.ones((9, 8, 3), np.uint8),
    "text": np.array("text", object),
    "x": np.ones((3, 4), np.float32),
    "v": np.ones(4, np.float32),
    "wave": np.ones(1024, np.float32),
    "m": np.eye(3, dtype=np.float32),
    "cube": np.ones((2, 4, 4, 4), np.float32),
    "z": np.ones((2, 4, 4, 4), np.complex64),
    "b": np.ones((3, 4), bool),
    "i": np.array([0, 1, 1, 2], np.int32),
    "n": np.ones((3, 4), np.int32),
    "long": np.array([0, 1, 1, 2], np.int64),
    "s": np.array(["a b", "c", "d"], object),
    "places": np.array([[0, 0], [0, 2], [2, 1]], np.int64),
    "values": np.array([1, 2, 3], np.float32),
    "numbers": np.array([1, 2, 3], np.int64),
    "splits": np.array([0, 2, 2, 4], np.int64),
    "boxes": np.ones((5, 4), np.float32),
    "seed": np.array([1, 2], np.int32),
    "rows": np.ones((2, 6, 8), np.float32),
    "volume": np.ones((2, 6, 6, 6, 2), np.float32),
    "scalar": np.array(0.5, np.float32),
}
ARGUMENTS = {
    name: tf.TensorSpec(value.shape, tf.string if value.dtype == object else value.dtype)
    for name, value in ARGUMENTS.items()
}


def structures(a):
    """Sparse and ragged tensors made of the arguments."""
    return {
        "sp": tf.SparseTensor(a["places"], a["values"], [3, 4]),
        "sparse_ints": tf.SparseTensor(a["places"], a["numbers"], [3, 4]),
        "sparse_words": tf.SparseTensor(a["places"], a["s"], [3, 4]),
        "rt": tf.RaggedTensor.from_row_splits(a["v"], a["splits"], validate=False),
        "ragged_ints": tf.RaggedTensor.from_row_splits(a["i"], a["splits"], validate=False),
        "ragged_words": tf.strings.split(a["s"]),
    }


def calls(text):
    """{name: expression} of lines like `name(arguments)`."""
    found = {}
    for line in text.strip().splitlines():
        line = line.strip()
        found[line.split("(")[0]] = "f." + line
    return found


IMAGE = calls(
    """
    adjust_brightness(image, 0.1)
    adjust_contrast(image, 2.0)
    adjust_gamma(image, 2.0)
    adjust_hue(image, 0.1)
    adjust_jpeg_quality(image, 90)
    adjust_saturation(image, 2.0)
    central_crop(image, 0.5)
    combined_non_max_suppression(images[:, :5, :1, None, 0] * tf.ones([2, 5, 1, 4]), images[:, :5, :2, 0], 3, 3)
    convert_image_dtype(bytes8, tf.float32)
    crop_and_resize(images, boxes, tf.zeros([5], tf.int32), [4, 4])
    crop_to_bounding_box(image, 1, 1, 3, 3)
    decode_and_crop_jpeg(text, [0, 0, 2, 2])
    decode_bmp(text)
    decode_gif(text)
    decode_image(text)
    decode_jpeg(text)
    decode_jxl(text)
    decode_png(text)
    decode_webp(text)
    draw_bounding_boxes(images, boxes[None] * tf.ones([2, 1, 1]), tf.ones([1, 4]))
    encode_jpeg(bytes8)
    encode_png(bytes8)
    extract_glimpse(images, [4, 4], tf.zeros([2, 2]))
    extract_jpeg_shape(text)
    extract_patches(images, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    flip_left_right(image)
    flip_up_down(image)
    generate_bounding_box_proposals(tf.ones([1, 4, 4, 2]), tf.ones([1, 4, 4, 8]), tf.ones([1, 5]), tf.ones([4, 4, 8]))
    grayscale_to_rgb(grey)
    hsv_to_rgb(image)
    image_gradients(images)
    is_jpeg(text)
    non_max_suppression(boxes, boxes[:, 0], 3)
    non_max_suppression_overlaps(boxes @ tf.transpose(boxes), boxes[:, 0], 3)
    non_max_suppression_padded(boxes, boxes[:, 0], 3, pad_to_max_output_size=True)
    non_max_suppression_with_scores(boxes, boxes[:, 0], 3)
    pad_to_bounding_box(image, 1, 1, 20, 20)
    per_image_standardization(image)
    psnr(images, images, 1.0)
    random_brightness(image, 0.2)
    random_contrast(image, 0.2, 0.5)
    random_crop(image, [3, 3, 3])
    random_flip_left_right(image)
    random_flip_up_down(image)
    random_hue(image, 0.2)
    random_jpeg_quality(image, 50, 90)
    random_saturation(image, 0.2, 0.5)
    resize(image, [4, 4])
    resize_with_crop_or_pad(image, 4, 20)
    resize_with_pad(image, 4, 20)
    rgb_to_grayscale(image)
    rgb_to_hsv(image)
    rgb_to_yiq(image)
    rgb_to_yuv(image)
    rot90(image)
    sample_distorted_bounding_box([9, 8, 3], boxes[None])
    sobel_edges(images)
    ssim(images, images, 1.0)
    ssim_multiscale(images, images, 1.0)
    stateless_random_brightness(image, 0.2, seed)
    stateless_random_contrast(image, 0.2, 0.5, seed)
    stateless_random_crop(image, [3, 3, 3], seed)
    stateless_random_flip_left_right(image, seed)
    stateless_random_flip_up_down(image, seed)
    stateless_random_hue(image, 0.2, seed)
    stateless_random_jpeg_quality(image, 50, 90, seed)
    stateless_random_saturation(image, 0.2, 0.5, seed)
    stateless_sample_distorted_bounding_box([9, 8, 3], boxes[None], seed)
    total_variation(images)
    transpose(image)
    yiq_to_rgb(image)
    yuv_to_rgb(image)
    """
)

STRINGS = calls(
    """
    as_string(x)
    bytes_split(s)
    format("{}", (x,))
    join([s, s], "-")
    length(s)
    lower(s)
    ngrams(ragged_words, 2)
    reduce_join(s)
    regex_full_match(s, "a.*")
    regex_replace(s, "a", "b")
    split(s)
    strip(s)
    substr(s, 0, 1)
    to_hash_bucket(s, 9)
    to_hash_bucket_fast(s, 9)
    to_hash_bucket_strong(s, 9, [1, 2])
    to_number(s)
    unicode_decode(s, "UTF-8")
    unicode_decode_with_offsets(s, "UTF-8")
    unicode_encode(ragged_ints, "UTF-8")
    unicode_script(i)
    unicode_split(s, "UTF-8")
    unicode_split_with_offsets(s, "UTF-8")
    unicode_transcode(s, "UTF-8", "UTF-16-BE")
    unsorted_segment_join(s, [0, 1, 0], 2)
    upper(s)
    """
)

SIGNAL = calls(
    """
    dct(x)
    fft(z)
    fft2d(z)
    fft3d(z)
    fftnd(z, [4, 4], [2, 3])
    fftshift(z)
    frame(wave, 256, 128)
    hamming_window(64)
    hann_window(64)
    idct(x)
    ifft(z)
    ifft2d(z)
    ifft3d(z)
    ifftnd(z, [4, 4], [2, 3])
    ifftshift(z)
    inverse_mdct(rows)
    inverse_stft(z[0], 6, 2)
    inverse_stft_window_fn(2)(6, tf.float32)
    irfft(z)
    irfft2d(z)
    irfft3d(z)
    irfftnd(z, [4, 4], [2, 3])
    kaiser_bessel_derived_window(64)
    kaiser_window(64)
    linear_to_mel_weight_matrix(20, 129)
    mdct(wave, 64)
    mfccs_from_log_mel_spectrograms(rows)
    overlap_and_add(rows, 4)
    rfft(cube)
    rfft2d(cube)
    rfft3d(cube)
    rfftnd(cube, [4, 4], [2, 3])
    stft(wave, 256, 128)
    vorbis_window(64)
    """
)

SPARSE = calls(
    """
    add(sp, sp)
    bincount(sparse_ints, minlength=4)
    concat(0, [sp, sp])
    cross([sparse_words, sparse_words])
    cross_hashed([sparse_words, sparse_words], 9)
    expand_dims(sp)
    eye(4)
    fill_empty_rows(sp, 0.0)
    from_dense(x)
    map_values(tf.abs, sp)
    mask(tf.IndexedSlices(x, i[:3]), i[:1])
    maximum(sp, sp)
    minimum(sp, sp)
    reduce_max(sp, 1)
    reduce_sum(sp, 1)
    reorder(sp)
    reset_shape(sp, [5, 5])
    reshape(sp, [4, 3])
    retain(sp, [True, False, True])
    segment_mean(x, i[:2], i[:2])
    segment_sqrt_n(x, i[:2], i[:2])
    segment_sum(x, i[:2], i[:2])
    slice(sp, [0, 0], [2, 2])
    softmax(sp)
    sparse_dense_matmul(sp, tf.transpose(x))
    split(sp, 2, 1)
    to_dense(sp)
    to_indicator(sparse_ints, 5)
    transpose(sp)
    """
)

RAGGED = calls(
    """
    boolean_mask(x, b)
    constant([[1, 2], [3]])
    cross([ragged_words, ragged_words])
    cross_hashed([ragged_words, ragged_words], 9)
    map_flat_values(tf.abs, rt)
    range(i)
    row_splits_to_segment_ids(splits)
    segment_ids_to_row_splits(i)
    stack([rt, rt])
    stack_dynamic_partitions(v, i, 3)
    """
)

LINALG = calls(
    """
    adjoint(m)
    band_part(m, 1, 1)
    banded_triangular_solve(m, m)
    cholesky(m)
    cholesky_solve(m, m)
    cross(m, m)
    det(m)
    diag(v)
    diag_part(m)
    eig(m)
    eigh(m)
    eigh_tridiagonal(v, v[:3])
    eigvals(m)
    eigvalsh(m)
    einsum("ij,kj->ik", m, m)
    expm(m)
    eye(3)
    global_norm([m, x])
    inv(m)
    l2_normalize(m)
    logdet(m)
    logm(z)
    lstsq(m, m)
    lu(m)
    lu_matrix_inverse(m, i[:3])
    lu_reconstruct(m, i[:3])
    lu_solve(m, i[:3], m)
    matmul(m, m)
    matrix_rank(m)
    matrix_transpose(m)
    matvec(m, values)
    norm(m)
    normalize(m)
    pinv(m)
    qr(m)
    set_diag(m, values)
    slogdet(m)
    solve(m, m)
    sqrtm(m)
    svd(m)
    tensor_diag(v)
    tensor_diag_part(m)
    tensordot(m, m, 1)
    trace(m)
    triangular_solve(m, m)
    tridiagonal_matmul([v[:3], v[:3], v[:3]], m, "sequence")
    tridiagonal_solve([v[:3], v[:3], v[:3]], m, "sequence")
    """
)

ONE = """abs acos acosh angle asin asinh atan atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e ceil conj cos cosh count_nonzero
    cumprod cumsum cumulative_logsumexp digamma erf erfc erfcinv erfinv exp expm1 floor imag is_finite is_inf is_nan
    is_non_decreasing is_strictly_increasing l2_normalize lgamma log log1p log_sigmoid log_softmax ndtri negative real reciprocal
    reciprocal_no_nan reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum
    reduce_variance rint round rsqrt sigmoid sign sin sinh softmax softplus softsign sqrt square tan tanh zero_fraction lbeta
    argmax argmin""".split()
TWO = """add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal igamma igammac less less_equal maximum
    minimum mod multiply multiply_no_nan nextafter not_equal polygamma pow squared_difference subtract truediv xdivy xlog1py
    xlogy zeta""".split()
MATH = {
    **{name: f"f.{name}(x)" for name in ONE},
    **{name: f"f.{name}(x, x + 1)" for name in TWO},
    **{name: f"f.{name}(v, i)" for name in ("segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum")},
    **{
        f"unsorted_segment_{name}": f"f.unsorted_segment_{name}(v, i, 3)"
        for name in ("max", "mean", "min", "prod", "sqrt_n", "sum")
    },
    **calls(
        """
        accumulate_n([x, x])
        add_n([x, x])
        approx_max_k(x, 2)
        approx_min_k(x, 2)
        betainc(x, x, x)
        bincount(i)
        confusion_matrix(i, i, 3)
        in_top_k(i[:3], x, 2)
        invert_permutation(i)
        logical_and(b, b)
        logical_not(b)
        logical_or(b, b)
        logical_xor(b, b)
        polyval([x, x], x)
        reduce_all(b)
        reduce_any(b)
        scalar_mul(2.0, x)
        sobol_sample(2, 5)
        top_k(x, 2)
        """
    ),
    **{
        f"special.{name}": f"f.special.{name}(x)"
        for name in dir(tf.math.special)
        if not name.startswith("_")
    },
}

SETS = calls(
    """
    difference(n, n)
    intersection(n, sparse_ints_32)
    size(sparse_ints)
    union(sparse_ints, sparse_ints)
    """.replace("sparse_ints_32", "tf.SparseTensor(places, i[:3], [3, 4])")
)

FEATURES = """{"a": tf.io.FixedLenFeature([2], tf.float32), "b": tf.io.VarLenFeature(tf.string), "c":
    tf.io.RaggedFeature(tf.int64)}""".replace("\n", " ")
SEQUENCE = """sequence_features={"q": tf.io.FixedLenSequenceFeature([2], tf.float32), "r": tf.io.VarLenFeature(tf.int64)}"""
IO = calls(
    f"""
    decode_and_crop_jpeg(text, [0, 0, 2, 2])
    decode_base64(s)
    decode_bmp(text)
    decode_compressed(s)
    decode_csv(s, [[1.0], [""]])
    decode_gif(text)
    decode_image(text)
    decode_jpeg(text)
    decode_json_example(s)
    decode_jxl(text)
    decode_png(text)
    decode_raw(s, tf.uint8)
    decode_webp(text)
    encode_base64(s)
    encode_jpeg(bytes8)
    encode_png(bytes8)
    extract_jpeg_shape(text)
    is_jpeg(text)
    parse_example(s, {FEATURES})
    parse_sequence_example(s, {FEATURES}, {SEQUENCE})
    parse_single_example(text, {FEATURES})
    parse_single_sequence_example(text, {FEATURES.split(', "c"')[0] + '}'}, {SEQUENCE})
    parse_tensor(text, tf.float32)
    serialize_tensor(x)
    serialize_sparse(sp)
    serialize_many_sparse(sp)
    deserialize_many_sparse(tf.reshape(s, [1, 3]), tf.float32)
    """
)


def layer_calls(text):
    """{class: layer | inputs} of lines like `Dense(3) | x`."""
    found = {}
    for line in text.strip().splitlines():
        found[line.strip().split("(")[0]] = "layers." + line.strip()
    return found


LAYERS = layer_calls(
    """
    Activation("gelu") | x
    ActivityRegularization() | x
    AdaptiveAveragePooling1D(2) | rows
    AdaptiveAveragePooling2D(2) | images
    AdaptiveAveragePooling3D(2) | volume
    AdaptiveMaxPooling1D(2) | rows
    AdaptiveMaxPooling2D(2) | images
    AdaptiveMaxPooling3D(2) | volume
    Add() | [x, x]
    AdditiveAttention() | [rows, rows]
    AlphaDropout(0.5) | x
    Attention() | [rows, rows]
    AutoContrast() | images
    Average() | [x, x]
    AveragePooling1D(2) | rows
    AveragePooling2D(2) | images
    AveragePooling3D(2) | volume
    BatchNormalization() | x
    Bidirectional(layers.LSTM(3)) | rows
    CategoryEncoding(4) | i
    CenterCrop(4, 4) | images
    Concatenate() | [x, x]
    Conv1D(3, 2) | rows
    Conv1DTranspose(3, 2) | rows
    Conv2D(3, 2) | images
    Conv2DTranspose(3, 2) | images
    Conv3D(3, 2) | volume
    Conv3DTranspose(3, 2) | volume
    ConvLSTM1D(3, 2) | cube
    ConvLSTM2D(3, 2) | volume
    ConvLSTM3D(3, 2) | volume[:, None]
    Cropping1D(1) | rows
    Cropping2D(1) | images
    Cropping3D(1) | volume
    Dense(3) | x
    DepthwiseConv1D(2) | rows
    DepthwiseConv2D(2) | images
    Discretization([0.0, 1.0]) | x
    Dot(1) | [x, x]
    Dropout(0.5) | x
    ELU() | x
    EinsumDense("ab,bc->ac", 3) | x
    Embedding(5, 3) | i
    Equalization() | images
    Flatten() | rows
    GRU(3) | rows
    GaussianDropout(0.5) | x
    GaussianNoise(0.5) | x
    GlobalAveragePooling1D() | rows
    GlobalAveragePooling2D() | images
    GlobalAveragePooling3D() | volume
    GlobalMaxPooling1D() | rows
    GlobalMaxPooling2D() | images
    GlobalMaxPooling3D() | volume
    GroupNormalization(2) | rows
    GroupQueryAttention(4, 4, 2) | rows, rows
    Hashing(9) | i
    HashedCrossing(9) | [i, i]
    Identity() | x
    LSTM(3) | rows
    LayerNormalization() | x
    LeakyReLU() | x
    Masking() | rows
    MaxPooling1D() | rows
    MaxPooling2D() | images
    MaxPooling3D() | volume
    Maximum() | [x, x]
    Minimum() | [x, x]
    MultiHeadAttention(2, 4) | rows, rows
    Multiply() | [x, x]
    Normalization(mean=1.0, variance=2.0) | x
    PReLU() | x
    Permute((2, 1)) | rows
    RMSNormalization() | x
    RandomBrightness(0.1) | images, training=False
    RandomContrast(0.1) | images, training=False
    RandomCrop(4, 4) | images, training=False
    RandomFlip() | images, training=False
    RandomRotation(0.1) | images, training=False
    RandomTranslation(0.1, 0.1) | images, training=False
    RandomZoom(0.1) | images, training=False
    ReLU() | x
    RepeatVector(3) | x
    Rescaling(2.0) | x
    Reshape((2, 2)) | x
    Resizing(4, 4) | images
    ReversibleEmbedding(5, 3) | i
    RNN(layers.LSTMCell(3)) | rows
    SeparableConv1D(3, 2) | rows
    SeparableConv2D(3, 2) | images
    SimpleRNN(3) | rows
    Solarization() | images, training=False
    Softmax() | x
    SpatialDropout1D(0.5) | rows
    SpatialDropout2D(0.5) | images
    SpatialDropout3D(0.5) | volume
    SpectralNormalization(layers.Dense(3)) | x
    Subtract() | [x, x]
    TimeDistributed(layers.Dense(3)) | rows
    UnitNormalization() | x
    UpSampling1D() | rows
    UpSampling2D() | images
    UpSampling3D() | volume
    ZeroPadding1D() | rows
    ZeroPadding2D() | images
    ZeroPadding3D() | volume
    """
)

SAMPLES = {
    "image": IMAGE,
    "strings": STRINGS,
    "signal": SIGNAL,
    "sparse": SPARSE,
    "ragged": RAGGED,
    "linalg": LINALG,
    "math": MATH,
    "sets": SETS,
    "io": IO,
    "keras.layers": LAYERS,
}

# Functions of files and of training; base classes, second names, layers that need another package, those that only change
# images while training, and layers of text, whose tables docs/keras.md tells of.
NOT_FOR_INFERENCE = {
    **{module: set() for module in MODULES},
    "sparse": {"sampled_addmm"},
    "io": set("decode_proto encode_proto match_filenames_once matching_files read_file write_file write_graph".split()),
    "keras.layers": set(
        """AbstractRNNCell AugMix CutMix MixUp RandAugment RandomColorDegeneration RandomColorJitter RandomElasticTransform
        RandomErasing RandomGaussianBlur RandomGrayscale RandomHue RandomInvert RandomPerspective RandomPosterization
        RandomSaturation RandomSharpness RandomShear RandomHeight RandomWidth FlaxLayer JaxLayer TorchModuleWrapper GRUCell Input
        InputLayer InputSpec IntegerLookup LSTMCell Lambda Layer MaxNumBoundingBoxes Pipeline SimpleRNNCell StackedRNNCells
        StringLookup TFSMLayer TextVectorization Wrapper ContrastLimitedAdaptiveHistogramEqualization MelSpectrogram STFTSpectrogram
        AvgPool1D AvgPool2D AvgPool3D Convolution1D Convolution1DTranspose Convolution2D Convolution2DTranspose Convolution3D
        Convolution3DTranspose GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D
        MaxPool1D MaxPool2D MaxPool3D SeparableConvolution1D SeparableConvolution2D ThresholdedReLU""".split()
    ),
}
