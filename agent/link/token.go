// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/pkg/tunnel"
)

func (l *Link) token(ctx context.Context) (*tunnel.Token, error) {
	text, err := l.opts.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("read join token: %w", err)
	}
	if text == "" {
		return nil, nil
	}
	t, err := tunnel.ParseToken(text)
	if err != nil {
		return nil, err // says what it is
	}
	return &t, nil
}

// isFor tells whether a token is for the Cluster that the agent joined as.
func isFor(token *tunnel.Token, id *Identity) bool {
	return token.Hub == id.Hub && token.ClusterUID == id.ClusterUID
}

// takes tells whether to join with a token: always without an identity; with one
// when it is a new token of the same Cluster. That of another Cluster has to wait
// until the hub does not serve this identity any more: manifests that were applied
// to the wrong cluster must not take it away from the Cluster it belongs to.
func (l *Link) takes(id *Identity, token *tunnel.Token) bool {
	switch {
	case token == nil:
		return false
	case !id.Joined():
		return true
	case bytes.Equal(id.JoinKey, token.PublicKey()):
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(l.tried, token.PublicKey()) {
		return false // refused before
	}
	return l.leave || isFor(token, id)
}

// fresh tells whether there is a token now that is to be joined with, and was not
// refused before.
func (l *Link) fresh(ctx context.Context) bool {
	token, err := l.token(ctx)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "join token could not be read")
		return false
	}
	id := l.currentIdentity()
	l.note(ctx, id, token)
	if !l.takes(id, token) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !bytes.Equal(l.tried, token.PublicKey()) // without an identity a refused one is tried again, slowly
}

// note tells of a token for another Cluster, once for each, and shows whether there
// is one.
func (l *Link) note(ctx context.Context, id *Identity, token *tunnel.Token) {
	if !id.Joined() || token == nil || isFor(token, id) || bytes.Equal(id.JoinKey, token.PublicKey()) {
		l.metrics.foreign.Set(0)
		return
	}
	l.metrics.foreign.Set(1)
	l.mu.Lock()
	told := bytes.Equal(l.noted, token.PublicKey())
	l.noted = token.PublicKey()
	l.mu.Unlock()
	if !told {
		logr.FromContextOrDiscard(ctx).Info("there is a join token for another Cluster; it is taken when the hub does not serve this one any more",
			"hub", id.Hub, "clusterUID", id.ClusterUID, "tokenHub", token.Hub, "tokenClusterUID", token.ClusterUID)
	}
}

func (l *Link) setLeave(leave bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave = leave
}

// weigh says whether to try a token of another Cluster at once after a failure, and
// how long to wait if not. leave tells whether it may be taken, also one that comes
// during the wait. A try that came to no answer is followed by one with the identity.
func (l *Link) weigh(ctx context.Context, wait time.Duration, leave bool) (time.Duration, bool) {
	id := l.currentIdentity()
	l.mu.Lock()
	l.leave, l.tookTurn = leave && !l.tookTurn, false
	l.mu.Unlock()
	token, err := l.token(ctx)
	if err != nil || token == nil || !id.Joined() || isFor(token, id) || bytes.Equal(id.JoinKey, token.PublicKey()) {
		return wait, false
	}
	l.mu.Lock()
	tried := bytes.Equal(l.tried, token.PublicKey())
	l.mu.Unlock()
	if tried {
		return wait, false
	}
	if l.takes(id, token) {
		return 0, true
	}
	return min(wait, l.backoff.Look+upTo(l.backoff.Look)), false
}
