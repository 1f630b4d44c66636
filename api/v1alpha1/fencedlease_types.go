package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenOrder says which claims a guarded object accepts, beside the current one.
//
// +kubebuilder:validation:Enum=NotOlder;StrictlyNewer
type TokenOrder string

const (
	// TokenOrderNotOlder accepts a claim that is not older than the object's
	// mark: any number of writes in a term.
	TokenOrderNotOlder TokenOrder = "NotOlder"

	// TokenOrderStrictlyNewer accepts a claim only if it is newer than the
	// object's mark: one write per object and term, the seal included.
	TokenOrderStrictlyNewer TokenOrder = "StrictlyNewer"
)

// IdentityKind is a kind of writer identity that can prove a token without
// presenting it afresh.
//
// +kubebuilder:validation:Enum=Pod;Certificate
type IdentityKind string

const (
	// IdentityPod is a Pod, known by its bound service-account token.
	IdentityPod IdentityKind = "Pod"

	// IdentityCertificate is a client certificate. Choose it only where no two
	// processes share one.
	IdentityCertificate IdentityKind = "Certificate"
)

// Verification says what a claim is compared with.
//
// +kubebuilder:validation:Enum=Linearizable;Cached
type Verification string

const (
	// VerificationLinearizable reads the Lease live for every write that is
	// admitted.
	VerificationLinearizable Verification = "Linearizable"

	// VerificationCached may admit a claim on values from a watch cache: a
	// stale write can pass for as long as a watch lags, on objects that the
	// new term has not touched.
	VerificationCached Verification = "Cached"
)

// Enforcement says what becomes of a write without a valid claim.
//
// +kubebuilder:validation:Enum=Deny;Warn
type Enforcement string

const (
	// EnforcementDeny refuses it.
	EnforcementDeny Enforcement = "Deny"

	// EnforcementWarn admits what would be refused as unclaimed or stale, with
	// a warning to the client, a metric and an Event.
	EnforcementWarn Enforcement = "Warn"
)

// FencedLeaseSpec is what a user asks of a FencedLease.
//
// +kubebuilder:validation:MinProperties=1
type FencedLeaseSpec struct {
	// leaseName is the name of the coordination.k8s.io/v1 Lease, in the same
	// namespace, that candidates compete for. It is created if it does not
	// exist. Defaults to the name of the FencedLease. Immutable.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="leaseName must be a DNS subdomain: lower case letters, digits, '-' and '.'"
	LeaseName string `json:"leaseName,omitempty"`

	// leaseDurationSeconds is the duration, in seconds, of the Lease that the
	// controller creates, and the one for clients that ask. A Lease that
	// already exists is left as it is. From 1 to 86400. Defaults to 15.
	//
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`

	// minToken is the least token that the next term gets. Raise it above the
	// highest mark after a restore from a backup that lost the counter. Raised
	// under a holder, the token rises at the holder's next renewal. Lowering it
	// has no effect: tokens never fall. From 1 to 2^50. Defaults to 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1125899906842624
	MinToken int64 `json:"minToken,omitempty"`

	// tokenOrder is NotOlder (a term may write an object any number of times)
	// or StrictlyNewer (one write per object and term). Defaults to NotOlder.
	//
	// +optional
	// +kubebuilder:default=NotOlder
	TokenOrder TokenOrder `json:"tokenOrder,omitempty"`

	// identities lists the kinds of writer identity that prove a token: a
	// write by the very Pod (or client certificate) that holds the current
	// token counts as claimed if the object already carries that token. Writers of
	// other kinds present it with every write; with [Certificate], Pods do too.
	// At least one. Defaults to [Pod].
	//
	// +optional
	// +listType=set
	// +kubebuilder:default={Pod}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Identities []IdentityKind `json:"identities,omitempty"`

	// verification is Linearizable (the Lease is read live for each guarded
	// write) or Cached (the claim may be accepted on watched values, which saves
	// the read and lets a stale write through for as long as the watch lags).
	// Defaults to Linearizable.
	//
	// +optional
	// +kubebuilder:default=Linearizable
	Verification Verification `json:"verification,omitempty"`

	// enforcement is Deny, or Warn to try the guard on a live cluster: unclaimed
	// and stale writes are then admitted with a warning. Defaults to Deny.
	//
	// +optional
	// +kubebuilder:default=Deny
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// allowControlPlane lets this FencedLease wrap the Leases of
	// kube-controller-manager and kube-scheduler in kube-system. Set it only
	// where the webhook has an address that does not depend on these two:
	// elsewhere, after a power cut, they would wait for a webhook that waits
	// for them. Taken back, it leaves a Lease that is wrapped already as it is:
	// delete the FencedLease then. Defaults to false.
	//
	// +optional
	// +kubebuilder:default=false
	AllowControlPlane *bool `json:"allowControlPlane,omitempty"`
}

// Condition types of a FencedLease.
const (
	// ConditionReady says whether acquisitions of the Lease are fenced.
	//
	// Possible reasons for this condition to be True are:
	//
	// * "Fenced": the Lease carries our label, and the API server called the
	//   mint webhook for it.
	//
	// Possible reasons for this condition to be False are:
	//
	// * "LeaseConflict": another FencedLease wraps the Lease; the first keeps it.
	// * "LeaseNotAllowed": this Lease is never wrapped (rule M9).
	// * "MintNotInForce": the API server does not call the mint webhook for the
	//   Lease, so an acquisition would get no token.
	// * "LeaseNotWritable": the API server refuses to let the operator write the
	//   Lease; the message says why.
	ConditionReady = "Ready"

	// ConditionHeld says whether a holder has the Lease and its token. There is
	// no clock in it: a Lease that expired is held until somebody takes it over.
	//
	// Possible reasons for this condition to be True are:
	//
	// * "Held": the holder has the current token.
	//
	// Possible reasons for this condition to be False are:
	//
	// * "NoHolder": nobody holds the Lease, or its holder released it.
	// * "TokenPending": the holder gets a token with its next renewal.
	//
	// Possible reasons for this condition to be Unknown are:
	//
	// * "NotFenced": the FencedLease is not Ready, so its Lease says nothing.
	ConditionHeld = "Held"
)

// Reasons of the conditions Ready and Held.
const (
	ReasonFenced          = "Fenced"
	ReasonLeaseConflict   = "LeaseConflict"
	ReasonLeaseNotAllowed = "LeaseNotAllowed"
	ReasonMintNotInForce  = "MintNotInForce"
	ReasonNotWritable     = "LeaseNotWritable"
	ReasonHeld            = "Held"
	ReasonNoHolder        = "NoHolder"
	ReasonTokenPending    = "TokenPending"
	ReasonNotFenced       = "NotFenced"
)

// Holder is who holds the Lease.
//
// +kubebuilder:validation:MinProperties=1
type Holder struct {
	// identity is the holderIdentity of the Lease.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Identity string `json:"identity,omitempty"`

	// writer is the writer identity to which the current token was minted:
	// pod/<uid>, certificate/<hash> or user/<name>. Absent until the holder's
	// next renewal where the operator or the API server acquired for it.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Writer string `json:"writer,omitempty"`
}

// FencedLeaseStatus is what the controller saw of the Lease.
//
// +kubebuilder:validation:MinProperties=1
type FencedLeaseStatus struct {
	// conditions are Ready and Held.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the conditions are
	// about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// token is the newest token that was seen on the Lease, from 1 to 2^53-1;
	// absent until the first is minted. It never falls: the API server refuses
	// to lower or to remove it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Token int64 `json:"token,omitempty"`

	// holder is who holds the Lease. Absent when nobody does.
	//
	// +optional
	Holder Holder `json:"holder,omitzero"`

	// acquireTime is the acquireTime of the Lease: when its holder took it, by
	// the holder's clock.
	//
	// +optional
	AcquireTime *metav1.MicroTime `json:"acquireTime,omitempty"`
}

// FencedLease wraps a coordination.k8s.io/v1 Lease and hands out a fencing
// token, larger by one with each change of holder. Writes to objects labelled
// fencedlease.io/guarded-by with its name are refused if their token is stale.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=fl,categories=fencedlease
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.status.holder.identity`
// +kubebuilder:printcolumn:name="Token",type=integer,JSONPath=`.status.token`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Lease",type=string,priority=1,JSONPath=`.spec.leaseName`
// +kubebuilder:printcolumn:name="Acquired",type=date,priority=1,JSONPath=`.status.acquireTime`
// +kubebuilder:printcolumn:name="Enforcement",type=string,priority=1,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !format.dns1123Label().validate(self.metadata.name).hasValue()",message="the name must be a DNS label of at most 63 characters: it is used as a label value"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.leaseName) ? self.spec.leaseName : self.metadata.name) == (has(oldSelf.spec) && has(oldSelf.spec.leaseName) ? oldSelf.spec.leaseName : oldSelf.metadata.name)",message="spec.leaseName is immutable: create another FencedLease for another Lease",fieldPath=".spec.leaseName"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.token) || (has(self.status) && has(self.status.token) && self.status.token >= oldSelf.status.token)",message="status.token can neither be lowered nor removed: tokens never fall",fieldPath=".status.token"
type FencedLease struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is asked of the FencedLease; every field has a default, and so
	// may be left out, as may all of it.
	//
	// +optional
	// +kubebuilder:default={enforcement: Deny}
	Spec FencedLeaseSpec `json:"spec,omitzero"`

	// status is what the controller saw of the Lease.
	//
	// +optional
	Status FencedLeaseStatus `json:"status,omitzero"`
}

// LeaseName is the name of the Lease that the FencedLease wraps.
func (f *FencedLease) LeaseName() string {
	if f.Spec.LeaseName != "" {
		return f.Spec.LeaseName
	}
	return f.Name
}

// FencedLeaseList is a list of FencedLeases.
//
// +kubebuilder:object:root=true
type FencedLeaseList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the FencedLeases.
	Items []FencedLease `json:"items"`
}
