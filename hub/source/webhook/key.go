// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// errNoToken: a Secret without the key of a webhook.
var errNoToken = errors.New("the Secret has no key " + keyToken)

// keys reads the keys of HMACs, each at most once in keyAge, whatever came of it.
type keys struct {
	clock   clock.PassiveClock
	secrets SecretGetter

	mu    sync.Mutex
	known map[types.NamespacedName]key
}

type key struct {
	token []byte
	err   error
	read  time.Time
}

func newKeys(c clock.PassiveClock, secrets SecretGetter) *keys {
	return &keys{clock: c, secrets: secrets, known: map[types.NamespacedName]key{}}
}

// get gives the key in a Secret, whose use must have been checked.
func (k *keys) get(ctx context.Context, secret types.NamespacedName) ([]byte, error) {
	now := k.clock.Now()
	k.mu.Lock()
	found, ok := k.known[secret]
	k.mu.Unlock()
	if ok && now.Sub(found.read) < keyAge {
		return found.token, found.err
	}
	found = key{read: now}
	found.token, found.err = k.read(ctx, secret)
	if ctx.Err() != nil { // the caller went away: that says nothing of the Secret
		return nil, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKeys {
		clear(k.known)
	}
	k.known[secret] = found
	return found.token, found.err
}

func (k *keys) read(ctx context.Context, secret types.NamespacedName) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	data, err := k.secrets.GetSecret(ctx, secret.Namespace, secret.Name)
	if err != nil {
		return nil, err
	}
	token := trimLine(data[keyToken])
	if len(token) == 0 {
		return nil, errNoToken
	}
	return token, nil
}

// trimLine takes off the line end that an editor leaves behind a token.
func trimLine(data []byte) []byte {
	return []byte(strings.TrimRight(string(data), "\r\n"))
}
