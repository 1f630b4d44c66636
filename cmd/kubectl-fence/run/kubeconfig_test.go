package run

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestKubeconfigSaysTheSame: whatever a user's configuration says about the cluster
// and the user, a client of our kubeconfig does as well, with the token.
func TestKubeconfigSaysTheSame(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := func(name string) string {
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, config := range map[string]rest.Config{
		"certificate": {
			Host: "https://example.com:6443/behind", DisableCompression: true,
			TLSClientConfig: rest.TLSClientConfig{ServerName: "other", CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key")},
		},
		"files": {
			Host:            "https://example.com",
			TLSClientConfig: rest.TLSClientConfig{CAFile: file("ca"), CertFile: file("cert"), KeyFile: file("key")},
		},
		"in a Pod": {
			Host:            "https://10.0.0.1:443",
			TLSClientConfig: rest.TLSClientConfig{CAFile: file("ca")},
			BearerToken:     "token", BearerTokenFile: file("token"),
		},
		"password, insecure": {
			Host: "https://example.com", Username: "ann", Password: "secret",
			TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		},
		"plugin": {
			Host: "https://example.com",
			ExecProvider: &clientcmdapi.ExecConfig{
				Command: "get-token", Args: []string{"--for", "me"}, Env: []clientcmdapi.ExecEnvVar{{Name: "A", Value: "b"}},
				APIVersion: "client.authentication.k8s.io/v1", InstallHint: "install it",
				ProvideClusterInfo: true, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
				Config: &runtime.Unknown{Raw: []byte(`{"audience":"x"}`), ContentType: runtime.ContentTypeJSON},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			who := identity{config: &config, namespace: "prod", self: rest.ImpersonationConfig{
				UserName: "ann", Groups: []string{"staff"},
			}}
			path := filepath.Join(t.TempDir(), "kubeconfig")
			for range 2 { // again, when the token rises
				if err := who.write(path, 7); err != nil {
					t.Fatal(err)
				}
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v: its mode is %v, want 0600", err, info.Mode())
			}
			loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, nil)
			got, err := loaded.ClientConfig()
			if err != nil {
				t.Fatal(err)
			}
			want := rest.CopyConfig(&config)
			want.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"staff"}, Extra: map[string][]string{
				"fencedlease.io/token": {"7"},
			}}
			for _, path := range []*string{&want.CAFile, &want.CertFile, &want.KeyFile, &want.BearerTokenFile} {
				if *path != "" {
					*path = filepath.Join(dir, *path)
				}
			}
			if want.ExecProvider != nil {
				want.ExecProvider.InteractiveMode = got.ExecProvider.InteractiveMode
				want.ExecProvider.StdinUnavailable, want.ExecProvider.StdinUnavailableMessage = got.ExecProvider.StdinUnavailable, got.ExecProvider.StdinUnavailableMessage
			}
			if diff := cmp.Diff(text(want), text(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if namespace, _, err := loaded.Namespace(); err != nil || namespace != "prod" {
				t.Errorf("the namespace is %q: %v", namespace, err)
			}
		})
	}
}

// text is what of a configuration says how to reach a cluster, and as whom.
func text(c *rest.Config) any {
	type part struct {
		Host, Username, Password, Token, TokenFile string
		TLS                                        rest.TLSClientConfig
		As                                         rest.ImpersonationConfig
		DisableCompression                         bool
		Plugin                                     *clientcmdapi.ExecConfig
	}
	return part{
		Host: c.Host, Username: c.Username, Password: c.Password, Token: c.BearerToken, TokenFile: c.BearerTokenFile,
		TLS: c.TLSClientConfig, As: c.Impersonate, DisableCompression: c.DisableCompression, Plugin: c.ExecProvider,
	}
}

// TestProxy: a proxy that the configuration names goes into the kubeconfig; that of
// the environment is in the environment of the command.
func TestProxy(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}
	for want, use := range map[string]func(*http.Request) (*url.URL, error){
		proxy.String(): http.ProxyURL(proxy),
		"":             nil,
	} {
		config, err := kubeconfigOf(&rest.Config{Host: "https://example.com", Proxy: use}, "prod", rest.ImpersonationConfig{UserName: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Clusters[entry].ProxyURL; got != want {
			t.Errorf("the proxy is %q, want %q", got, want)
		}
	}
}

// TestWithoutClaim: the claim of a run around this one is not ours.
func TestWithoutClaim(t *testing.T) {
	outer := &rest.Config{Impersonate: rest.ImpersonationConfig{
		UserName: "ann", Extra: map[string][]string{"fencedlease.io/token": {"7"}, "other": {"x"}},
	}}
	if diff := cmp.Diff(map[string][]string{"other": {"x"}}, withoutClaim(outer).Impersonate.Extra); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(outer.Impersonate.Extra) != 2 {
		t.Error("the caller's configuration was changed")
	}
}
