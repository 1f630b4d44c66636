package run

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/internal/claim"
)

// missingRights says which rights somebody lacks to be that user by impersonation;
// "" if that cannot be found out. The API server's own words for it name one right
// at a time, and since Kubernetes 1.36 by verbs that need not be granted.
func missingRights(ctx context.Context, config *rest.Config, as rest.ImpersonationConfig) string {
	client, err := authorization.NewForConfig(config)
	if err != nil {
		return ""
	}
	var missing []string
	for _, right := range claim.Rights(as) {
		review, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
		}, metav1.CreateOptions{})
		if err != nil {
			return ""
		}
		if review.Status.Allowed {
			continue
		}
		name := right.Resource + " " + right.Name
		if right.Subresource != "" {
			name = right.Resource + "/" + right.Subresource
		}
		missing = append(missing, name)
	}
	if len(missing) == 0 {
		return ""
	}
	return "you may not impersonate " + strings.Join(missing, ", ")
}
