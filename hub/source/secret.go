// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"slices"

	"kumodo.io/convoy/api/source/v1alpha1"
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

	// tokenUser goes with a token where a server wants a user name and looks at the
	// password alone.
	tokenUser = "git"
)

// remote puts together where a source is and what it is reached with.
func (c *Coordinator) remote(ctx context.Context, repo *v1alpha1.GitRepository) (git.Remote, error) {
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
	if repo.Spec.CASecretRef != nil {
		data, err := c.secret(ctx, repo, repo.Spec.CASecretRef.Name)
		if err != nil {
			return git.Remote{}, err
		}
		if remote.CA = data[keyCA]; len(remote.CA) == 0 {
			return git.Remote{}, failure(v1alpha1.ReasonSecretMissing, "Secret %s has no key %s", repo.Spec.CASecretRef.Name, keyCA)
		}
	}
	return remote, nil
}

// secret reads a Secret, if its use was checked.
func (c *Coordinator) secret(ctx context.Context, repo *v1alpha1.GitRepository, name string) (map[string][]byte, error) {
	if !slices.Contains(repo.Status.CheckedSecrets, name) {
		return nil, fmt.Errorf("the Secret %s: %w", name, ErrNotChecked)
	}
	data, err := c.secrets.GetSecret(ctx, repo.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", name, err)
	}
	return data, nil
}

// auth reads credentials: a bearer token, a key, a user name and password, or a
// token in place of a password.
func auth(data map[string][]byte) (git.Auth, error) {
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
	default:
		return git.Auth{}, failure(v1alpha1.ReasonSecretMissing, "has none of the keys %s and %s, %s, %s, %s", keyUsername, keyPassword, keyToken, keyBearerToken, keyIdentity)
	}
}

// trimLine takes off the line end that an editor leaves behind a token.
func trimLine(data []byte) []byte {
	for len(data) > 0 && (data[len(data)-1] == '\n' || data[len(data)-1] == '\r') {
		data = data[:len(data)-1]
	}
	return data
}
