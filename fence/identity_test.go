package fence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencedlease/fencedlease/fence"
)

func TestIdentityOf(t *testing.T) {
	const (
		podUID       = "authentication.kubernetes.io/pod-uid"
		credentialID = "authentication.kubernetes.io/credential-id"
	)
	type extra = map[string][]string
	cases := map[string]struct {
		username string
		extra    extra
		want     fence.Identity
		wantKind fence.IdentityKind
	}{
		"a bound token names its Pod": {
			extra: extra{podUID: {"7e68"}, credentialID: {"JTI=1"}},
			want:  "pod/7e68", wantKind: fence.KindPod,
		},
		"a certificate is its hash": {
			extra: extra{credentialID: {"X509SHA256=ab12"}},
			want:  "certificate/ab12", wantKind: fence.KindCertificate,
		},
		"the Pod goes before the certificate": {
			extra: extra{podUID: {"7e68"}, credentialID: {"X509SHA256=ab12"}},
			want:  "pod/7e68", wantKind: fence.KindPod,
		},
		"no extra leaves the user name": {
			want: "user/system:serviceaccount:prod:payments", wantKind: fence.KindUser,
		},
		"a credential id that changes with each refresh is no identity": {
			extra: extra{credentialID: {"JTI=1"}},
			want:  "user/system:serviceaccount:prod:payments", wantKind: fence.KindUser,
		},
		"the certificate's among several credential ids": {
			extra: extra{credentialID: {"JTI=1", "X509SHA256=ab12"}},
			want:  "certificate/ab12", wantKind: fence.KindCertificate,
		},
		"an empty Pod counts as absent": {
			extra: extra{podUID: {""}, credentialID: {"X509SHA256=ab12"}},
			want:  "certificate/ab12", wantKind: fence.KindCertificate,
		},
		"an empty value beside the Pod counts for nothing": {
			extra: extra{podUID: {"", "7e68"}},
			want:  "pod/7e68", wantKind: fence.KindPod,
		},
		"an extra without values counts as absent": {
			extra: extra{podUID: {}, credentialID: {}},
			want:  "user/system:serviceaccount:prod:payments", wantKind: fence.KindUser,
		},
		"two Pods are nobody in particular": {
			extra: extra{podUID: {"7e68", "9f01"}},
			want:  "user/system:serviceaccount:prod:payments", wantKind: fence.KindUser,
		},
		"a user name that looks like a Pod is a user": {
			username: "pod/7e68",
			want:     "user/pod/7e68", wantKind: fence.KindUser,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			username := tc.username
			if username == "" {
				username = "system:serviceaccount:prod:payments"
			}
			got := fence.IdentityOf(username, tc.extra)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("identity (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantKind, got.Kind()); diff != "" {
				t.Errorf("kind (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestUnknownIdentityProvesNothing(t *testing.T) {
	if got := fence.Identity("").Kind(); got != fence.KindUser {
		t.Errorf("an unknown identity counts as a %s", got)
	}
}
