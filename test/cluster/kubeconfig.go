package cluster

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig file that says the same as cfg, impersonation
// included.
func (c *Cluster) Kubeconfig(path string, cfg *rest.Config) error {
	const name = "fencedlease"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   cfg.Host,
			CertificateAuthorityData: cfg.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: cfg.CertData,
			ClientKeyData:         cfg.KeyData,
			Token:                 cfg.BearerToken,
			Impersonate:           cfg.Impersonate.UserName,
			ImpersonateUID:        cfg.Impersonate.UID,
			ImpersonateGroups:     cfg.Impersonate.Groups,
			ImpersonateUserExtra:  cfg.Impersonate.Extra,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
