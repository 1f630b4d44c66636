package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// tokenLifetime is that of service-account tokens, in seconds: a week, as long
// as envtest's certificates are good for.
const tokenLifetime = int64(7 * 24 * time.Hour / time.Second)

// UserConfig is the configuration of a user with a client certificate that is
// new with each call: its writer identity is certificate/<hash>.
func (c *Cluster) UserConfig(name string, groups ...string) (*rest.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Tests are no reason to throttle clients.
	base := &rest.Config{QPS: -1}
	user, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, base)
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// PodConfig is the configuration of a process in a Pod: it carries a
// service-account token that is bound to the Pod, whose writer identity is
// pod/<uid>. The Pod and its service account are created unless they exist; no
// node runs it. Rights are the caller's to grant to the service account.
func (c *Cluster) PodConfig(ctx context.Context, namespace, serviceAccount, podName string) (*rest.Config, error) {
	if err := c.createServiceAccount(ctx, namespace, serviceAccount); err != nil {
		return nil, err
	}
	pods := c.client.CoreV1().Pods(namespace)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName},
		Spec: corev1.PodSpec{
			ServiceAccountName: serviceAccount,
			Containers:         []corev1.Container{{Name: "main", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		pod, err = pods.Get(ctx, podName, metav1.GetOptions{})
	}
	if err != nil {
		return nil, err
	}
	return c.tokenConfig(ctx, namespace, serviceAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	})
}

// ServiceAccountConfig is the configuration of a process that has a token of a
// service account, bound to no Pod: its writer identity is user/<username>. The
// service account is created unless it exists. Rights are the caller's to grant.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, serviceAccount string) (*rest.Config, error) {
	if err := c.createServiceAccount(ctx, namespace, serviceAccount); err != nil {
		return nil, err
	}
	return c.tokenConfig(ctx, namespace, serviceAccount, nil)
}

func (c *Cluster) createServiceAccount(ctx context.Context, namespace, name string) error {
	_, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// tokenConfig is the configuration of a service account, with a token that is
// bound to an object or, where that is nil, to nothing.
func (c *Cluster) tokenConfig(ctx context.Context, namespace, serviceAccount string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	lifetime := tokenLifetime
	request, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &lifetime,
			BoundObjectRef:    bound,
		}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token of service account %s/%s: %w", namespace, serviceAccount, err)
	}
	cfg := rest.AnonymousClientConfig(c.Admin)
	cfg.QPS = c.Admin.QPS
	cfg.BearerToken = request.Status.Token
	return cfg, nil
}

// ImpersonateExtra is a configuration with which the user of cfg impersonates
// itself, with extra added to its user extras. It remains who it was, a Pod for
// instance. The user needs the right to impersonate itself and the extras.
func ImpersonateExtra(ctx context.Context, cfg *rest.Config, extra map[string][]string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx,
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	self := review.Status.UserInfo

	all := map[string][]string{}
	for key, value := range self.Extra {
		all[key] = value
	}
	maps.Copy(all, extra)
	as := rest.CopyConfig(cfg)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: self.Username,
		Groups:   slices.DeleteFunc(self.Groups, impliedGroup),
		Extra:    all,
	}
	return as, nil
}

// impliedGroup says whether the API server puts an impersonated user into a
// group by itself. Asking for it would only take a right more.
func impliedGroup(group string) bool {
	return group == "system:authenticated" || strings.HasPrefix(group, "system:serviceaccounts")
}
