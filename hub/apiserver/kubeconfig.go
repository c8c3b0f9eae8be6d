// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kumodo.io/convoy/hub/apiserver/internal/standalone"
)

// Groups that have rights in standalone mode.
const (
	GroupAdmin  = standalone.GroupAdmin
	GroupViewer = standalone.GroupViewer
)

// Kubeconfig makes a kubeconfig for a holder of the given groups, certified by
// the hub CA. servingCA is whom the holder believes, PEM.
func (s *Server) Kubeconfig(hubCA Certifier, servingCA []byte, name string, groups ...string) ([]byte, error) {
	certificate, key, err := hubCA.ClientCertificate(name, groups, s.clock.Now(), adminLifetime)
	if err != nil {
		return nil, fmt.Errorf("make client certificate: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["convoy"] = &clientcmdapi.Cluster{Server: s.url, CertificateAuthorityData: servingCA}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["convoy"] = &clientcmdapi.Context{Cluster: "convoy", AuthInfo: name, Namespace: "default"}
	config.CurrentContext = "convoy"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return raw, nil
}

// WriteAdminKubeconfig writes a kubeconfig of the group convoy:admin, mode 0600,
// all at once.
func (s *Server) WriteAdminKubeconfig(path string, hubCA Certifier, servingCA []byte) (err error) {
	raw, err := s.Kubeconfig(hubCA, servingCA, "convoy-admin", GroupAdmin)
	if err != nil {
		return err
	}
	// CreateTemp opens with mode 0600.
	f, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*")
	if err != nil {
		return fmt.Errorf("make kubeconfig: %w", err)
	}
	_, werr := f.Write(raw)
	if err := errors.Join(werr, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write kubeconfig: %w", err), os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("name kubeconfig: %w", err), os.Remove(f.Name()))
	}
	return nil
}
