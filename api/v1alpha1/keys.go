package v1alpha1

// Keys on guarded objects.
const (
	// LabelGuardedBy puts an object under the FencedLease of that name in the
	// object's own namespace.
	LabelGuardedBy = "fencedlease.io/guarded-by"

	// AnnotationWrite is an optional nonce "<token>/<anything>": a writer that
	// changes it presents that token afresh.
	AnnotationWrite = "fencedlease.io/write"

	// AnnotationBypass is the reason of a break-glass write. Only a write that
	// changes it counts; a stored reason means nothing afterwards.
	AnnotationBypass = "fencedlease.io/bypass"
)

// AnnotationToken holds a fencing token in canonical base 10, from 1 to
// 2^53-1. On a guarded object it is the claim on the way in and the mark once
// stored; on a Lease it is the current token.
const AnnotationToken = "fencedlease.io/token"

// Keys on Leases. Only the mint webhook and the operator write them; from
// anyone else they are replaced by the stored values (rule M4).
const (
	// LabelFencedBy names the FencedLease that wraps the Lease.
	LabelFencedBy = "fencedlease.io/fenced-by"

	// LabelRetired is "true" once the FencedLease named by LabelFencedBy is
	// gone: the counter on the Lease stays protected (rule M10).
	LabelRetired = "fencedlease.io/retired"

	// AnnotationTokenFor is the holderIdentity to which the current token was
	// minted.
	AnnotationTokenFor = "fencedlease.io/token-for"

	// AnnotationTokenHolder is the writer identity to which the current token
	// was minted: pod/<uid>, certificate/<hash> or user/<name>.
	AnnotationTokenHolder = "fencedlease.io/token-holder"
)

// RetiredTrue is the only value of LabelRetired that means retired.
const RetiredTrue = "true"

// Keys in the user extra of a request (Impersonate-Extra-… headers).
const (
	// ExtraToken carries a claim for any verb; exactly one value.
	ExtraToken = "fencedlease.io/token"

	// ExtraBypass carries the reason of a break-glass DELETE or /status write.
	ExtraBypass = "fencedlease.io/bypass"
)

// VerbBypass is the RBAC verb on fencedleases that break-glass writes need.
const VerbBypass = "bypass"
