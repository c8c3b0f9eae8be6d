// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// serveJoin is the life of one connection to the join endpoint.
func (g *Gateway) serveJoin(ctx context.Context, conn *tunnel.Conn, established func()) {
	link, err := g.handshake(ctx, conn, g.joinTLS, tunnel.MuxOptions{Streams: g.joining})
	if err != nil {
		g.log.V(1).Info("join handshake failed", "peer", conn.RemoteAddr().String(), "cause", err.Error())
		return
	}
	// It stays a handshake for the admission: nobody has been identified.
	defer established()
	ctx, cancel := context.WithTimeout(ctx, JoinLifetime)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-link.Done():
	}
	closeLink(link)
}

// serveStreams serves the streams of all links until the server is shut down.
func serveStreams(server *http.Server, streams *tunnel.Streams) {
	if err := server.Serve(streams); err != nil {
		return // it always has one, which says that it was shut down
	}
}

func closeLink(link *tunnel.Session) {
	if err := link.Close(); err != nil {
		return // the connection is gone, which is what was wanted
	}
}

func (g *Gateway) joinRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+tunnel.JoinPath, g.handleNonce)
	mux.HandleFunc("POST "+tunnel.JoinPath, g.handleJoin)
	return mux
}

func (g *Gateway) handleNonce(w http.ResponseWriter, _ *http.Request) {
	nonce, ok := g.nonces.give()
	if !ok || !g.enroll.Allow() {
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonOverloaded, "too many joins at once", RetryEnroll)
		return
	}
	tunnel.WriteJSON(w, tunnel.NonceAnswer{Nonce: nonce})
}

func (g *Gateway) handleJoin(w http.ResponseWriter, r *http.Request) {
	var req tunnel.JoinRequest
	if err := tunnel.DecodeJSON(r.Body, tunnel.MaxJoinBody, &req); err != nil {
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "the join request could not be read", 0)
		return
	}
	kind := "join"
	if len(req.JoinKey) == 0 {
		kind = "recover"
	}
	answer, err := g.certify(r.Context(), req)
	g.answerCertificate(w, kind, req.ClusterUID, answer, err)
}

func (g *Gateway) answerCertificate(w http.ResponseWriter, kind, clusterUID string, answer *tunnel.CertificateAnswer, err error) {
	var refusal *Refusal
	switch {
	case err == nil:
		g.metrics.joins.WithLabelValues(kind, "issued").Inc()
		g.log.Info("certificate issued", "kind", kind, "clusterUID", clusterUID, "expires", answer.NotAfter)
		tunnel.WriteJSON(w, answer)
	case errors.As(err, &refusal):
		g.metrics.joins.WithLabelValues(kind, refusal.Reason).Inc()
		g.log.Info("certificate refused", "kind", kind, "clusterUID", clusterUID, "reason", refusal.Reason)
		writeRefusal(w, refusal)
	default:
		g.metrics.joins.WithLabelValues(kind, "failed").Inc()
		g.log.Error(err, "certificate could not be issued", "kind", kind, "clusterUID", clusterUID)
		tunnel.WriteProblem(w, http.StatusServiceUnavailable, tunnel.ReasonInternal, "the hub could not record the certificate", RetryEnroll)
	}
}

// certify answers a join or a recovery.
func (g *Gateway) certify(ctx context.Context, req tunnel.JoinRequest) (*tunnel.CertificateAnswer, error) {
	// Whatever comes of it, the nonce is gone.
	if !g.nonces.take(req.Nonce) {
		return nil, refuse(tunnel.ReasonNonce, "the nonce was not given by this hub, was used, or is too old")
	}
	if !g.proven(req) {
		return nil, refuse(tunnel.ReasonProof, "the request is not signed with the keys it names")
	}
	cluster, ok := g.opts.Clusters.ByUID(req.ClusterUID)
	if !ok {
		switch {
		case len(req.JoinKey) == 0 && g.opts.Clusters.None():
			return nil, empty()
		case len(req.JoinKey) == 0:
			return nil, refuse(tunnel.ReasonClusterUnknown, "there is no such Cluster")
		}
		return nil, refuse(tunnel.ReasonTokenUnknown, "there is no such token")
	}
	id := tunnel.ClusterID{Namespace: cluster.Namespace, Name: cluster.Name, UID: string(cluster.UID)}
	bound := tunnel.KeyID(req.BoundKey)
	answer, err := g.issue(ctx, identity{id: id, bound: bound}, req.ClientKey, func(status *v1alpha1.ClusterStatus, now time.Time) error {
		return admit(status, req, now)
	})
	switch {
	case err == nil:
		g.joined.add(id.UID, bound)
		g.ClusterChanged(id.UID) // the session of who joined before ends
	case asRefusal(err) != nil && asRefusal(err).Reason == tunnel.ReasonTokenUsed:
		g.opts.Notice(id, v1alpha1.ReasonTokenReused,
			"a join token that another agent has joined with was presented again, and refused: who else has it? Join anew, or revoke the agent, if the first one is not yours")
	}
	return answer, err
}

// proven tells whether the proofs of a join request are good, for any CA that the
// agent may have pinned.
func (g *Gateway) proven(req tunnel.JoinRequest) bool {
	for _, pin := range g.trust().pins {
		if tunnel.VerifyJoin(req, g.opts.HubID, pin) == nil {
			return true
		}
	}
	return false
}

// issue records a certificate in the compare-and-swap that decides whether it
// may be had, and signs it only then.
func (g *Gateway) issue(ctx context.Context, who identity, clientKey []byte, decide func(*v1alpha1.ClusterStatus, time.Time) error) (*tunnel.CertificateAnswer, error) {
	now := g.opts.Now()
	cert, err := g.issuer.Prepare(who.id, who.bound, clientKey, now)
	if err != nil {
		return nil, &Refusal{Code: http.StatusBadRequest, Reason: tunnel.ReasonBadRequest, Message: "the client key must be ECDSA P-256"}
	}
	err = g.opts.Clusters.Update(ctx, who.id, func(status *v1alpha1.ClusterStatus) error {
		if err := decide(status, now); err != nil {
			return err
		}
		// A hub that was restored may have given higher numbers before.
		status.Agent.Renewals = max(status.Agent.Renewals, who.renewal) + 1
		cert.Number(status.Agent.Renewals)
		end := metav1.NewTime(cert.NotAfter)
		status.Agent.CertificateExpiresAt, status.Agent.CertificateSerial = &end, cert.Serial
		return nil
	})
	if err != nil {
		return nil, err // a Refusal, or says what failed
	}
	raw, err := g.issuer.Sign(cert)
	if err != nil {
		return nil, err // says what failed
	}
	return &tunnel.CertificateAnswer{
		Certificate: raw, HubCA: g.trust().pem, NotAfter: cert.NotAfter, Hub: g.opts.HubID, OrderKeys: g.opts.OrderKeys(),
	}, nil
}

// admit decides about a join or recovery whose proofs verify, and changes the
// status accordingly: the token is used up by the write that records the keys.
func admit(status *v1alpha1.ClusterStatus, req tunnel.JoinRequest, now time.Time) error {
	agent := status.Agent
	if len(req.JoinKey) == 0 {
		if agent == nil || !sameKey(agent.BoundKey, req.BoundKey) {
			return refuse(tunnel.ReasonClusterUnknown, "another agent has joined as this Cluster, or none")
		}
		if refused := usable(agent); refused != nil {
			return refused
		}
		return recovered(agent, now)
	}
	if agent != nil && sameKey(agent.JoinKey, req.JoinKey) {
		switch {
		case !sameKey(agent.BoundKey, req.BoundKey):
			return refuse(tunnel.ReasonTokenUsed, "the token was used by another agent; make a new one if that was not yours")
		case now.After(agent.JoinedAt.Add(tunnel.TokenTTL)):
			return refuse(tunnel.ReasonTokenExpired, "the token was used, and its time is over")
		case usable(agent) != nil:
			return usable(agent)
		}
		return nil // the answer was lost: the same keys may ask again
	}
	if status.Join == nil || !sameKey(status.Join.PublicKey, req.JoinKey) {
		return refuse(tunnel.ReasonTokenUnknown, "there is no such token")
	}
	if !now.Before(status.Join.ExpiresAt.Time) {
		return refuse(tunnel.ReasonTokenExpired, "the token has expired; make a new one")
	}
	// A new identity: what was held against the one before does not count.
	status.Join, status.FormerClusterUIDs = nil, nil
	clearConflict(status)
	status.Agent = &v1alpha1.ClusterAgentStatus{
		BoundKey: base64.StdEncoding.EncodeToString(req.BoundKey), JoinKey: base64.StdEncoding.EncodeToString(req.JoinKey),
		JoinedAt: metav1.NewTime(now),
	}
	return nil
}

// sameKey compares a key of the status with one of a request. Both are public.
func sameKey(recorded string, key []byte) bool {
	raw, err := base64.StdEncoding.DecodeString(recorded)
	return err == nil && len(raw) > 0 && bytes.Equal(raw, key)
}

// fingerprint of a recorded bound key, "" when there is none.
func fingerprint(recorded string) string {
	raw, err := base64.StdEncoding.DecodeString(recorded)
	if err != nil || len(raw) == 0 {
		return ""
	}
	return tunnel.KeyID(raw)
}

// joined remembers who joined until the cache has it too, so that the session
// that follows a join at once is not refused.
type joined struct {
	mu  sync.Mutex
	who map[string]string
}

func (j *joined) add(uid, bound string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.who) >= MaxNonces {
		clear(j.who) // those in it are in the cache by now, but for the last few
	}
	j.who[uid] = bound
}

func (j *joined) is(uid, bound string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.who[uid] == bound
}

func (j *joined) forget(uid string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.who, uid)
}

// nonces given and not used yet.
type nonces struct {
	now func() time.Time

	mu    sync.Mutex
	given map[[nonceLen]byte]time.Time
	swept time.Time
}

const nonceLen = 32

func newNonces(now func() time.Time) *nonces {
	return &nonces{now: now, given: map[[nonceLen]byte]time.Time{}}
}

func (n *nonces) give() ([]byte, bool) {
	var nonce [nonceLen]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	if len(n.given) >= MaxNonces || now.Sub(n.swept) > tunnel.NonceTTL {
		for k, at := range n.given {
			if now.Sub(at) > tunnel.NonceTTL {
				delete(n.given, k)
			}
		}
		n.swept = now
	}
	if len(n.given) >= MaxNonces {
		return nil, false
	}
	n.given[nonce] = now
	return nonce[:], true
}

// take tells whether the nonce may be used, once.
func (n *nonces) take(nonce []byte) bool {
	if len(nonce) != nonceLen {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := [nonceLen]byte(nonce)
	at, ok := n.given[key]
	delete(n.given, key)
	return ok && n.now().Sub(at) <= tunnel.NonceTTL
}
