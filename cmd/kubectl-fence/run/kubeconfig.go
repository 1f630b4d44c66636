package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/claim"
)

// entry is the name of the one cluster, user and context in a kubeconfig of ours.
const entry = "fenced"

// identity is who the command is to be: the user of a configuration, as it
// impersonates itself to carry a token.
type identity struct {
	config    *rest.Config
	namespace string
	self      rest.ImpersonationConfig
}

// whoAmI finds out whether the user of the configuration may impersonate itself
// with a token, with a harmless request made in that way. If not, missing says what
// is in the way.
func whoAmI(ctx context.Context, config *rest.Config, namespace string) (id *identity, missing string, err error) {
	self, err := claim.WhoAmI(config)(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("the API server does not say who you are: %w", err)
	}
	id = &identity{config: config, namespace: namespace, self: self}
	as := rest.CopyConfig(config)
	as.Impersonate = id.with(anyToken)
	client, err := authentication.NewForConfig(as)
	if err != nil {
		return nil, "", err
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case isRefusal(err):
		if missing = missingRights(ctx, config, as.Impersonate); missing == "" {
			missing = err.Error()
		}
		return nil, missing, nil
	case err != nil:
		return nil, "", fmt.Errorf("whether you may impersonate yourself cannot be found out: %w", err)
	case len(review.Status.UserInfo.Extra[v1alpha1.ExtraToken]) != 1:
		return nil, "something between here and the API server takes the token off", nil
	}
	return id, "", nil
}

// anyToken stands for those to come: rights do not depend on the number.
const anyToken fence.Token = 1

// withoutClaim is the configuration of the user alone, should it be that of a
// command that this program runs already, in a term of another Lease.
func withoutClaim(config *rest.Config) *rest.Config {
	alone := rest.CopyConfig(config)
	alone.Impersonate.Extra = maps.Clone(config.Impersonate.Extra)
	delete(alone.Impersonate.Extra, v1alpha1.ExtraToken)
	return alone
}

// with is how the user impersonates itself with a token.
func (id *identity) with(token fence.Token) rest.ImpersonationConfig {
	as := id.self
	as.Extra = id.config.Impersonate.Extra // of the user whom --as names
	return claim.Presenting(as, token)
}

// write writes a kubeconfig with which every request carries the token. Whoever
// reads the file meanwhile gets the old one or the new one.
func (id *identity) write(path string, token fence.Token) error {
	config, err := kubeconfigOf(id.config, id.namespace, id.with(token))
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-") // for nobody else to read
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// kubeconfigOf is a kubeconfig that says what a configuration says, but for whom
// it impersonates. Files of credentials stay files: they may be rotated.
func kubeconfigOf(config *rest.Config, namespace string, as rest.ImpersonationConfig) (*clientcmdapi.Config, error) {
	cluster := &clientcmdapi.Cluster{
		Server:                   config.Host,
		TLSServerName:            config.ServerName,
		InsecureSkipTLSVerify:    config.Insecure,
		CertificateAuthorityData: config.CAData,
		DisableCompression:       config.DisableCompression,
	}
	user := &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
		Username:              config.Username,
		Password:              config.Password,
		AuthProvider:          config.AuthProvider,
		Impersonate:           as.UserName,
		ImpersonateUID:        as.UID,
		ImpersonateGroups:     as.Groups,
		ImpersonateUserExtra:  as.Extra,
	}
	for _, file := range []struct {
		to   *string
		path string
		data []byte // is used instead, where there is some
	}{
		{&cluster.CertificateAuthority, config.CAFile, config.CAData},
		{&user.ClientCertificate, config.CertFile, config.CertData},
		{&user.ClientKey, config.KeyFile, config.KeyData},
		{&user.TokenFile, config.BearerTokenFile, nil},
	} {
		if file.path == "" || len(file.data) > 0 {
			continue
		}
		path, err := filepath.Abs(file.path)
		if err != nil {
			return nil, err
		}
		*file.to = path
	}
	if plugin := config.ExecProvider; plugin != nil {
		user.Exec = plugin
		if plugin.Config != nil {
			cluster.Extensions = map[string]runtime.Object{execConfig: plugin.Config}
		}
	}
	var err error
	if cluster.ProxyURL, err = proxyOf(config); err != nil {
		return nil, err
	}
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{entry: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{entry: user},
		Contexts:       map[string]*clientcmdapi.Context{entry: {Cluster: entry, AuthInfo: entry, Namespace: namespace}},
		CurrentContext: entry,
	}, nil
}

// execConfig is where a cluster of a kubeconfig has what it says to plugins that
// get credentials.
const execConfig = "client.authentication.k8s.io/exec"

// proxyOf is the proxy that a configuration names; "" where it leaves that to the
// environment, which the command has as well.
func proxyOf(config *rest.Config) (string, error) {
	if config.Proxy == nil {
		return "", nil
	}
	request, err := http.NewRequest(http.MethodGet, config.Host, http.NoBody)
	if err != nil {
		return "", err
	}
	proxy, err := config.Proxy(request)
	if proxy == nil || err != nil {
		return "", err
	}
	return proxy.String(), nil
}
