// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/git"
)

// Keys of Secrets.
const (
	keyUsername    = "username"
	keyPassword    = "password"
	keyBearerToken = "bearerToken"
	keyToken       = "token"
	keyIdentity    = "identity"
	keyKnownHosts  = "known_hosts"
	keyCA          = "ca.crt"
	keyDocker      = ".dockerconfigjson"
	keyClientCert  = "tls.crt"
	keyClientKey   = "tls.key"
	// suffixPublicKey of the keys with which signatures are verified.
	suffixPublicKey = ".pub"

	// tokenUser goes with a token where a server wants a user name and looks at the
	// password alone.
	tokenUser = "git"
)

// gitRemote puts together where a source is and what it is reached with.
func (c *Coordinator) gitRemote(ctx context.Context, repo *v1alpha1.GitRepository) (git.Remote, error) {
	remote := git.Remote{URL: repo.Spec.URL, Policy: c.policy}
	if _, err := git.ParseURL(repo.Spec.URL); err != nil {
		return git.Remote{}, err
	}
	if repo.Spec.SecretRef != nil {
		data, err := c.secret(ctx, repo, repo.Spec.SecretRef.Name)
		if err != nil {
			return git.Remote{}, err
		}
		if remote.Auth, err = auth(data); err != nil {
			return git.Remote{}, fmt.Errorf("the Secret %s: %w", repo.Spec.SecretRef.Name, err)
		}
	}
	ca, err := c.ca(ctx, repo, repo.Spec.CASecretRef)
	remote.CA = ca
	return remote, err
}

// chartRemote puts together where charts are and what they are reached with.
func (c *Coordinator) chartRemote(ctx context.Context, o *v1alpha1.HelmRegistry) (endpoint.Remote, error) {
	remote, err := c.registryRemote(ctx, o, o.Spec.SecretRef, o.Spec.CASecretRef)
	remote.PassCredentials = o.Spec.PassCredentials
	return remote, err
}

// artifactRemote puts together where an artifact is and what it is reached with.
func (c *Coordinator) artifactRemote(ctx context.Context, o *v1alpha1.OCIRegistry) (endpoint.Remote, error) {
	return c.registryRemote(ctx, o, o.Spec.SecretRef, o.Spec.CASecretRef)
}

func (c *Coordinator) registryRemote(ctx context.Context, o v1alpha1.Source, credentials, ca *v1alpha1.SecretReference) (endpoint.Remote, error) {
	remote := endpoint.Remote{URL: o.SourceURL(), Policy: c.policy}
	if _, err := endpoint.ParseURL(remote.URL); err != nil {
		return endpoint.Remote{}, err
	}
	if credentials != nil {
		data, err := c.secret(ctx, o, credentials.Name)
		if err != nil {
			return endpoint.Remote{}, err
		}
		if remote.Auth, err = registryAuth(data); err != nil {
			return endpoint.Remote{}, fmt.Errorf("the Secret %s: %w", credentials.Name, err)
		}
	}
	found, err := c.ca(ctx, o, ca)
	remote.CA = found
	return remote, err
}

func (c *Coordinator) ca(ctx context.Context, o v1alpha1.Source, ref *v1alpha1.SecretReference) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	data, err := c.secret(ctx, o, ref.Name)
	if err != nil {
		return nil, err
	}
	if len(data[keyCA]) == 0 {
		return nil, failure(v1alpha1.ReasonSecretMissing, "Secret %s has no key %s", ref.Name, keyCA)
	}
	return data[keyCA], nil
}

// keys are the public keys of a source that requires signatures, in the order of
// their names; nil where none is required.
func (c *Coordinator) keys(ctx context.Context, o v1alpha1.Source) ([][]byte, error) {
	v := verifyOf(o)
	if v == nil {
		return nil, nil
	}
	data, err := c.secret(ctx, o, v.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if strings.HasSuffix(name, suffixPublicKey) {
			keys = append(keys, data[name])
		}
	}
	if len(keys) == 0 {
		return nil, failure(v1alpha1.ReasonSecretMissing, "Secret %s has no key that ends in %s", v.SecretRef.Name, suffixPublicKey)
	}
	return keys, nil
}

// secret reads a Secret, if its use was checked.
func (c *Coordinator) secret(ctx context.Context, o v1alpha1.Source, name string) (map[string][]byte, error) {
	return c.checkedSecret(ctx, o.GetNamespace(), name, o.SourceStatus().CheckedSecrets)
}

func (c *Coordinator) checkedSecret(ctx context.Context, namespace, name string, checked []string) (map[string][]byte, error) {
	if !slices.Contains(checked, name) {
		return nil, fmt.Errorf("the Secret %s: %w", name, ErrNotChecked)
	}
	data, err := c.secrets.GetSecret(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", name, err)
	}
	return data, nil
}

// auth reads credentials: a bearer token, a key, a user name and password, or a
// token in place of a password; and a client certificate, with them or alone.
func auth(data map[string][]byte) (git.Auth, error) {
	certificate, key, err := clientCertificate(data)
	if err != nil {
		return git.Auth{}, err
	}
	out, err := authOf(data, certificate != nil)
	out.ClientCert, out.ClientKey = certificate, key
	return out, err
}

func authOf(data map[string][]byte, certificate bool) (git.Auth, error) {
	text := func(key string) string { return string(trimLine(data[key])) }
	switch {
	case len(data[keyIdentity]) > 0:
		return git.Auth{Identity: data[keyIdentity], Password: text(keyPassword), KnownHosts: data[keyKnownHosts]}, nil
	case len(data[keyBearerToken]) > 0:
		return git.Auth{Bearer: text(keyBearerToken)}, nil
	case len(data[keyToken]) > 0:
		user := text(keyUsername)
		if user == "" {
			user = tokenUser
		}
		return git.Auth{Username: user, Password: text(keyToken), KnownHosts: data[keyKnownHosts]}, nil
	case len(data[keyUsername]) > 0 || len(data[keyPassword]) > 0:
		return git.Auth{Username: text(keyUsername), Password: text(keyPassword), KnownHosts: data[keyKnownHosts]}, nil
	case certificate:
		return git.Auth{}, nil
	default:
		return git.Auth{}, failure(v1alpha1.ReasonSecretMissing, "has none of the keys %s and %s, %s, %s, %s, %s and %s",
			keyUsername, keyPassword, keyToken, keyBearerToken, keyIdentity, keyClientCert, keyClientKey)
	}
}

// registryAuth reads credentials for a registry: a docker configuration, or a user
// name and password; and a client certificate, with them or alone.
func registryAuth(data map[string][]byte) (endpoint.Auth, error) {
	certificate, key, err := clientCertificate(data)
	if err != nil {
		return endpoint.Auth{}, err
	}
	out := endpoint.Auth{ClientCert: certificate, ClientKey: key}
	switch {
	case len(data[keyDocker]) > 0:
		out.Docker = data[keyDocker]
	case len(data[keyUsername]) > 0 || len(data[keyPassword]) > 0:
		out.Username, out.Password = string(trimLine(data[keyUsername])), string(trimLine(data[keyPassword]))
	case certificate == nil:
		return endpoint.Auth{}, failure(v1alpha1.ReasonSecretMissing, "has none of the keys %s, %s and %s, %s and %s",
			keyDocker, keyUsername, keyPassword, keyClientCert, keyClientKey)
	}
	return out, nil
}

// clientCertificate is nil where there is none; half of one is an error.
func clientCertificate(data map[string][]byte) (certificate, key []byte, err error) {
	certificate, key = data[keyClientCert], data[keyClientKey]
	if (len(certificate) > 0) != (len(key) > 0) {
		return nil, nil, failure(v1alpha1.ReasonSecretMissing, "has one of the keys %s and %s and not the other", keyClientCert, keyClientKey)
	}
	if len(certificate) == 0 {
		return nil, nil, nil
	}
	return certificate, key, nil
}

// trimLine takes off the line end that an editor leaves behind a token.
func trimLine(data []byte) []byte {
	for len(data) > 0 && (data[len(data)-1] == '\n' || data[len(data)-1] == '\r') {
		data = data[:len(data)-1]
	}
	return data
}
