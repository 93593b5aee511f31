"""What the audit needs that no package says: how to make a loss, why one is not driven, whether a break is a bug."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

Patterns = tuple[str, ...]

ST, CE = "sentence_transformers.sentence_transformer.losses:", "sentence_transformers.cross_encoder.losses:"
SPARSE, MV = "sentence_transformers.sparse_encoder.losses:", "sentence_transformers.multi_vector_encoder.losses:"
PML, HF, TORCH = "pytorch_metric_learning.losses:", "transformers.loss.loss_utils:", "torch.nn.functional:"
SMOOTHER = "transformers.trainer_pt_utils:LabelSmoother"

#: The ways to make a loss that are audited, where that is not the one without options.
OPTIONS: dict[str, tuple[str, ...]] = {
    f"{CE}ListMLELoss": ("", "respect_input_order=False"),
    f"{CE}PListMLELoss": ("", "respect_input_order=False"),
    f"{CE}LambdaLoss": (
        "",
        "weighting_scheme=None",
        "weighting_scheme=NDCGLoss1Scheme()",
        "weighting_scheme=NDCGLoss2Scheme()",
        "weighting_scheme=LambdaRankScheme()",
    ),
    f"{CE}MultipleNegativesRankingLoss": ("", "activation_fn=None"),
    f"{CE}CachedMultipleNegativesRankingLoss": ("", "activation_fn=None"),
    f"{ST}GISTEmbedLoss": ("", "margin=1e-06"),
    f"{ST}CachedGISTEmbedLoss": ("", "margin=1e-06"),
    f"{PML}RankedListLoss": ("margin=0.4, Tn=10",),
    f"{PML}HistogramLoss": ("n_bins=21",),
    f"{PML}SelfSupervisedLoss": ("loss=NTXentLoss()",),
    SMOOTHER: ("", "epsilon=0.0"),
}

POINTWISE = "Judges every pair of query and document by itself: there is no list whose order could matter."
PAIRWISE = "Judges every pair of texts by itself, by a label of its own: no other text is a negative."
ROWS = "Takes a row of three texts, its own negative among them: the batch does not matter."
TEACHER = "Copies a teacher's scores or embeddings: what is right is what the teacher says."
REGULARISER = "A regulariser: it has no positives or negatives."
BASE = "A base class, of no loss of its own."
CLASSES = "Trains a vector a class: its negatives are classes, not documents."
OTHER_MODEL = "Compares texts by a model of its own: it sees no logits of the one under test."
IMAGES = "Is of boxes or masks in images."
SPEECH = "Is of speech: of alignments or sound, not of one label a position."

#: Why a loss is put to no contract, by pattern; the first that fits.
UNDRIVEN: dict[str, str] = {
    # cross-encoders
    f"{CE}BinaryCrossEntropyLoss": POINTWISE,
    f"{CE}CrossEntropyLoss": "Classifies pairs: its targets are classes, not an order of documents.",
    f"{CE}MSELoss": TEACHER,
    f"{CE}MarginMSELoss": TEACHER,
    # embeddings with a score, a class or a label a pair
    f"{ST}AnglELoss": "CoSENTLoss, which is driven, with another similarity of two embeddings.",
    f"{SPARSE}SparseAnglELoss": "SparseCoSENTLoss, which is driven, with another similarity of two embeddings.",
    f"{ST}CosineSimilarityLoss": PAIRWISE,
    f"{SPARSE}SparseCosineSimilarityLoss": PAIRWISE,
    f"{ST}ContrastiveLoss": PAIRWISE,
    f"{ST}OnlineContrastiveLoss": PAIRWISE,
    f"{ST}SoftmaxLoss": "Classifies pairs by a layer that it trains.",
    f"{ST}TripletLoss": ROWS,
    f"{SPARSE}SparseTripletLoss": ROWS,
    # teachers
    f"{ST}MSELoss": TEACHER,
    f"{ST}MarginMSELoss": TEACHER,
    f"{ST}DistillKLDivLoss": TEACHER,
    f"{ST}EmbedDistillLoss": TEACHER,
    f"{SPARSE}SparseMSELoss": TEACHER,
    f"{SPARSE}SparseMarginMSELoss": TEACHER,
    f"{SPARSE}SparseDistillKLDivLoss": TEACHER,
    f"{MV}*": TEACHER,
    # what needs a model's inside
    f"{ST}AdaptiveLayerLoss": "Trains the layers inside a transformer; embeddings alone do not have any.",
    f"{ST}Matryoshka2dLoss": "Trains layers inside a transformer as well as prefixes; its MatryoshkaLoss is driven.",
    f"{ST}ContrastiveTension*": "Compares two copies of a model that it makes itself.",
    f"{ST}DenoisingAutoEncoderLoss": "Trains a decoder that writes the text again.",
    f"{SPARSE}CSRReconstructionLoss": "Reconstructs embeddings through a sparse autoencoder's layers.",
    f"{SPARSE}CSRLoss": "Adds a reconstruction through an autoencoder's layers to a loss; that loss is driven.",
    f"{SPARSE}*SpladeLoss": "Adds a regulariser to a loss; that loss, SparseMultipleNegativesRankingLoss, is driven.",
    # regularisers
    f"{SPARSE}FlopsLoss": REGULARISER,
    f"{ST}GlobalOrthogonalRegularizationLoss": REGULARISER,
    # pytorch-metric-learning
    f"{PML}BaseLossWrapper": BASE,
    f"{PML}BaseMetricLossFunction": BASE,
    f"{PML}GenericPairLoss": BASE,
    f"{PML}MultipleLosses": "Adds other losses up; those are driven.",
    f"{PML}CrossBatchMemory": "Keeps embeddings of earlier batches as documents, so a batch alone has no value.",
    f"{PML}DynamicSoftMarginLoss": "Keeps a histogram of earlier batches, so a batch alone has no value.",
    f"{PML}InstanceLoss": "Takes the embedding's coordinates for scores of classes.",
    f"{PML}ManifoldLoss": "Walks at random over a graph that it makes of the batch and of proxies that it trains.",
    f"{PML}VICRegLoss": "Has no negatives: it asks for variance and independence of the coordinates.",
    f"{PML}P2SGradLoss": CLASSES,
    f"{PML}SoftTripleLoss": CLASSES,
    f"{PML}Proxy*Loss": CLASSES,
    f"{PML}*Softmax*Loss": CLASSES,
    f"{PML}*FaceLoss": CLASSES,
    # torchmetrics
    "torchmetrics*:BERTScore": OTHER_MODEL,
    "torchmetrics*:bert_score": OTHER_MODEL,
    "torchmetrics*:InfoLM": OTHER_MODEL,
    "torchmetrics.text:*": "Compares texts as strings: it sees no logits.",
    # transformers
    "transformers.loss.loss_utils:ForQuestionAnsweringLoss": "Two cross-entropies over the places where an answer may "
    "start and end.",
    "transformers.loss.loss_utils:ForSequenceClassificationLoss": "Classifies whole texts.",
    "transformers.loss.loss_utils:ForSemanticSegmentationLoss": IMAGES,
    "transformers.loss.loss_ctc:*": SPEECH,
    "transformers.loss.loss_lsd:*": SPEECH,
    "transformers.loss.loss_rnnt:*": SPEECH,
    "transformers.loss.loss_tdt:*": SPEECH,
    "transformers.loss.*": IMAGES,
    # torch
    "torch.nn*:binary_cross_entropy*": "Is of independent yes-or-no targets.",
    "torch.nn*:nll_loss": "Takes logarithms of probabilities, not logits; cross_entropy, which calls it, is driven.",
    "torch.nn:NLLLoss*": "Takes logarithms of probabilities, not logits; cross_entropy, which calls it, is driven.",
    "torch.nn:LinearCrossEntropyLoss": "Holds a layer of weights; linear_cross_entropy, which it calls, is driven.",
}


@dataclass(frozen=True)
class Sentence:
    """Whether a broken promise is a bug or a design, and why.

    Attributes
    ----------
    losses, promises
        Patterns of the losses and promises it is about.
    design
        True where the loss does what it is meant to do.
    because
        The sentence.
    upstream
        What was found of it in the library's reports, or where none was.
    options
        Patterns of the ways to make the loss that it is about; all by default.
    """

    losses: Patterns
    promises: Patterns
    design: bool
    because: str
    upstream: str = ""
    options: Patterns = ("*",)

    def about(self, loss: str, promise: str, options: str) -> bool:
        """Whether it is about this promise of this loss."""
        asked = ((self.losses, loss), (self.promises, promise), (self.options, options))
        return all(any(fnmatchcase(one, pattern) for pattern in patterns) for patterns, one in asked)


def bug(losses: Patterns, promises: Patterns, because: str, upstream: str = "", options: Patterns = ("*",)) -> Sentence:
    """A sentence on what nobody meant to do."""
    return Sentence(losses, promises, False, because, upstream, options)


def design(
    losses: Patterns, promises: Patterns, because: str, upstream: str = "", options: Patterns = ("*",)
) -> Sentence:
    """A sentence on what the loss is meant to do."""
    return Sentence(losses, promises, True, because, upstream, options)


HALF = (
    "It computes in the format of what it is given to the end, so that in bfloat16 or float16 sums and logarithms are "
    "rounded too; give it float32, as autocast does for a cross-entropy."
)
KINK = (
    "In float16 its distances have 1e-6 added to every difference of coordinates, in other formats not: equal "
    "embeddings get a gradient there and none elsewhere. A distance of 0 is a kink, and both are slopes of it."
)
PML_REPOSITORY = "KevinMusgrave/pytorch-metric-learning"
NO_HF = "No report found in huggingface/transformers."
NO_ST, NO_PML = (f"No report found in {name}." for name in ("huggingface/sentence-transformers", PML_REPOSITORY))
LISTS_OF_PAIRS = (f"{CE}RankNetLoss", f"{CE}LambdaLoss")
PAIR_LISTS = (f"{ST}CoSENTLoss", f"{SPARSE}SparseCoSENTLoss")
#: Of pytorch-metric-learning: no softmax over documents, whatever else they are.
MARGINS = (
    *(f"{PML}{name}Loss" for name in ("Angular", "Circle", "Contrastive", "GeneralizedLiftedStructure")),
    *(f"{PML}{name}Loss" for name in ("LiftedStructure", "Margin", "MultiSimilarity", "TripletMargin", "TupletMargin")),
    f"{PML}SignalToNoiseRatioContrastiveLoss",
)
NONZERO = (f"{PML}ContrastiveLoss", f"{PML}MarginLoss", f"{PML}TripletMarginLoss")
SNR = f"{PML}SignalToNoiseRatioContrastiveLoss"
DISTANCES = (*NONZERO, f"{PML}LiftedStructureLoss", f"{PML}GeneralizedLiftedStructureLoss")

SENTENCES: tuple[Sentence, ...] = (
    # --- sentence-transformers, cross-encoders: lists ---
    bug(
        (f"{CE}ListMLELoss", f"{CE}PListMLELoss"),
        ("padding_invariance", "tie_order"),
        "It sorts the padded matrix of labels by an unstable sort, which from 17 documents on puts equal labels in "
        "another order: a longer list beside it reverses what a list with ties learns.",
        NO_ST,
        options=("respect_input_order=False",),
    ),
    bug(
        (f"{CE}LambdaLoss",),
        ("tie_order",),
        "It ranks the padded matrix of logits by an unstable sort, which from 17 documents on puts equal logits in "
        "another order, and with them the weights of their pairs.",
        NO_ST,
    ),
    design(
        LISTS_OF_PAIRS,
        ("batch_invariance",),
        "It is the mean over all pairs of the batch, so that a long list, which has more pairs, outweighs a short one.",
        NO_ST,
    ),
    design(
        (f"{CE}ADRMSELoss",),
        ("batch_invariance", "short_lists"),
        "It is the mean over all documents of the batch, so that a long list outweighs a short one and an empty list "
        "does not count.",
        NO_ST,
    ),
    design(
        (f"{CE}LambdaLoss",),
        ("short_lists",),
        "The scheme NDCGLoss1 keeps each document's pair with itself, as its weights are a document's and not a "
        "pair's; a list of one document then costs a constant, and is counted.",
        options=("weighting_scheme=NDCGLoss1Scheme()",),
    ),
    bug(
        (f"{CE}ListNetLoss",),
        ("short_lists",),
        "The softmax of an empty list's labels is nan, and so is the value of the whole batch; the gradients of the "
        "other lists stay right.",
        NO_ST,
    ),
    design(
        PAIR_LISTS,
        ("padding_invariance", "batch_invariance", "short_lists", "tie_order"),
        "The batch is one list: every pair of texts is compared with every other, so that lists put into one batch "
        "mix.",
    ),
    # --- sentence-transformers, embeddings ---
    design(
        (f"{CE}*MultipleNegativesRankingLoss",),
        ("score_gradients",),
        "By default a score goes through a sigmoid, whose slope differs from score to score; with activation_fn=None "
        "the gradients by the scores sum to 0.",
        options=("",),
    ),
    design(
        (f"{ST}MegaBatchMarginLoss",),
        ("blind", "one_pair", "score_gradients"),
        "Two hinges, not a softmax: a pair pays until its cosine is 0.8, and its hardest negative until that is 0.3, "
        "each by itself.",
    ),
    design(
        (f"{ST}BatchHardTripletLoss", f"{ST}BatchHardSoftMarginTripletLoss"),
        ("one_pair",),
        "Its distance to the hardest negative is 0 where there is none, so that the margin, or ln 2, remains.",
    ),
    design(
        (f"{ST}BatchHardTripletLoss", f"{ST}BatchHardSoftMarginTripletLoss"),
        ("row_permutation",),
        "Of negatives that are equally hard it takes the first; the value stays, and which of them is pushed changes.",
    ),
    design(
        (f"{ST}BatchSemiHardTripletLoss",),
        ("one_pair", "row_permutation", "extremes", "precision"),
        "Where all distances are alike it takes no triplet, so that nothing can be read off the batch that a contract "
        "starts from.",
    ),
    design(
        (f"{ST}GISTEmbedLoss", f"{ST}CachedGISTEmbedLoss"),
        ("duplicates",),
        "At its default margin of 0 it masks what the guide finds more alike than the pair, and an exact copy is just "
        "as alike; a margin of 1e-6 masks it.",
        "huggingface/sentence-transformers#2756 is about duplicates in a batch.",
        options=("",),
    ),
    design(
        (f"{ST}MatryoshkaLoss",),
        ("full_size",),
        "It normalises every prefix, the whole embedding too: a base loss of dot products becomes one of cosines.",
    ),
    bug(
        (f"{ST}MatryoshkaLoss",),
        ("prefixes", "scale", "perfect_student"),
        "Where labels are a teacher's embeddings it cuts them and does not renormalise them, as it does the "
        "student's: a student that is its teacher pays.",
        "The cut came with huggingface/sentence-transformers#3538; no report of what it lacks found there.",
    ),
    # --- pytorch-metric-learning ---
    bug(
        (f"{PML}NTXentLoss", f"{PML}SupConLoss"),
        ("blind",),
        "With one positive and one negative pair it returns 0: a guard against empty batches also catches this one.",
        NO_PML,
    ),
    bug(
        (f"{PML}NTXentLoss",),
        ("temperature_limits", "extremes"),
        "It adds the smallest number of the format inside the logarithm: in float32 a query's loss stops at 87.3, and "
        "its gradient is 0 there.",
        NO_PML,
    ),
    design(
        (f"{PML}SupConLoss",),
        ("rows", "temperature_limits", "extremes"),
        "Its mean is over queries whose loss is not 0. One that has learned to the last digit leaves it, and doubles "
        "the weight of the other.",
        NO_PML,
    ),
    bug(
        (f"{PML}AngularLoss",),
        ("scale",),
        "It normalises queries and positives and not the references that are negatives, though its distance says "
        "embeddings are normalised: a document twice as long pushes twice as hard.",
        NO_PML,
    ),
    bug(
        (f"{PML}NCALoss",),
        ("blind", "rows"),
        "One query returns 0 however many references it is compared with: the guard counts queries alone.",
        NO_PML,
    ),
    bug(
        (f"{PML}TupletMarginLoss",),
        ("rows", "row_permutation", "scale", "more_negatives", "extremes", "precision"),
        "It takes the arc cosine of a positive's cosine, whose slope is infinite at 1: two equal embeddings give a "
        "gradient that is not finite.",
        NO_PML,
    ),
    bug(
        (f"{PML}HistogramLoss",),
        ("*",),
        "Two embeddings with a cosine of 1 fall into a bin behind the last, and it raises.",
        NO_PML,
    ),
    bug(
        (f"{PML}ThresholdConsistentMarginLoss",),
        ("*",),
        "Given references, it looks positives and negatives up among the queries, where there may be none of that "
        "number.",
        NO_PML,
    ),
    bug(
        (f"{PML}RankedListLoss",),
        ("precision",),
        "Its weights are powers of e up to e^12, more than float16 holds.",
    ),
    design(
        (f"{PML}RankedListLoss",),
        ("one_pair",),
        "Its positives pay until they are closer than a radius, whether or not there is a negative.",
    ),
    design(
        MARGINS,
        ("blind", "score_gradients"),
        "No softmax over the documents: positives and negatives pay by margins of their own, so that guessing has no "
        "price, and push and pull need not be equal.",
    ),
    design(
        NONZERO,
        ("rows", "more_negatives"),
        "Its mean is over pairs or triplets that still cost something: what is learned leaves the mean, a further "
        "document may lower it, and a batch is not the mean of its queries.",
    ),
    design(
        (SNR,),
        ("rows",),
        "Its mean is over pairs that still cost something, so that a batch is not the mean of its queries.",
    ),
    design(
        (SNR,),
        ("row_permutation", "scale", "more_negatives"),
        "It divides by the variance of a query's coordinates: one whose coordinates are equal has none.",
    ),
    design(
        (SNR,),
        ("extremes",),
        "It pays by the pairs that are not yet far enough apart; rounding alone decides whether one on the margin is.",
    ),
    design(
        (f"{PML}FastAPLoss",),
        ("scale", "precision"),
        "It sorts distances into soft bins, whose edges are kinks: on an edge, rounding decides which way the slope "
        "goes.",
    ),
    design(
        (f"{PML}IntraPairVarianceLoss",),
        ("*",),
        "It asks that pairs of a kind be alike: on a batch in which they are it has no gradient, and a contract "
        "nothing to start from.",
    ),
    design(
        (f"{PML}SmoothAPLoss", f"{PML}PNPLoss"),
        ("*",),
        "Its ranks are sigmoids at temperature 0.01, flat in float32 where a pair is far from another: on a badly "
        "ranked batch it has no gradient, and a contract nothing to start from.",
    ),
    # --- tokens ---
    bug(
        ("torchmetrics*:[Pp]erplexity",),
        ("underflow",),
        "It takes the softmax and then its logarithm: once a token's probability is 0 in the format, at a lead of 104 "
        "in float32, the perplexity of everything is inf.",
        "No report found in Lightning-AI/torchmetrics; #2224 there is about half precision being refused.",
    ),
    design(
        (SMOOTHER,),
        ("base", "underflow", "gradients", "forbidden", "extremes"),
        "It smooths labels, by 0.1 as it is by itself: part of every token's cost is that of all others, so that one "
        "which is forbidden costs infinitely much.",
        options=("",),
    ),
    bug(
        (SMOOTHER,),
        ("forbidden",),
        "Where nothing is smoothed it still multiplies the smoothed cost by 0, and 0 times inf is nan: one forbidden "
        "token spoils the batch.",
        NO_HF,
        options=("epsilon=0.0",),
    ),
    design(
        (f"{TORCH}linear_cross_entropy",),
        ("forbidden",),
        "The logits are made inside, as a product; here that is by the identity, and -inf times its zeros is nan "
        "before the loss begins.",
    ),
    # --- formats ---
    design(
        (
            f"{CE}*MultipleNegativesRankingLoss",
            f"{MV}*MultipleNegativesRankingLoss",
            f"{ST}*MultipleNegativesSymmetricRankingLoss",
            f"{ST}*GISTEmbedLoss",
            f"{ST}MatryoshkaLoss",
            f"{PML}AngularLoss",
            f"{PML}CircleLoss",
            f"{PML}MultiSimilarityLoss",
            f"{PML}NCALoss",
            f"{PML}NPairsLoss",
            f"{PML}SelfSupervisedLoss",
        ),
        ("precision", "extremes"),
        HALF,
    ),
    design((f"{PML}NTXentLoss", f"{PML}SupConLoss", SNR), ("precision",), HALF),
    design((f"{PML}FastAPLoss",), ("extremes",), HALF),
    design(("torchmetrics.text:Perplexity",), ("extremes",), HALF),
    design((SMOOTHER,), ("extremes",), HALF, options=("epsilon=0.0",)),
    design(DISTANCES, ("precision", "extremes"), KINK),
    design((f"{PML}RankedListLoss",), ("extremes",), KINK),
)
