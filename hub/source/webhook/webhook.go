// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/source/v1alpha1"
)

const (
	// Path of the calls, as http.ServeMux has it.
	Path = "POST /v1/hooks/{namespace}/{kind}/{name}"

	headerGitHub      = "X-Hub-Signature-256"
	headerGitHubEvent = "X-GitHub-Event"
	headerGeneric     = "X-Convoy-Signature"
	signaturePrefix   = "sha256="
	eventPing         = "ping"

	// keyToken of the Secret that a source's webhook names.
	keyToken = "token"
)

// Options of a Handler. All but Clock and Registerer are required.
type Options struct {
	Sources Sources
	Secrets SecretGetter
	// Told is called when a source told of a change. It must not block.
	Told       func(source v1alpha1.Source)
	Clock      clock.PassiveClock
	Registerer prometheus.Registerer
}

// Handler answers calls.
type Handler struct {
	options Options
	metrics *metrics
	limits  *limits
	places  *places
	keys    *keys
	// nobody is the key of those that there are not: its HMAC takes as long as another.
	nobody []byte
}

// New makes a Handler.
func New(options Options) (*Handler, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	m, err := newMetrics(options.Registerer)
	if err != nil {
		return nil, err
	}
	h := &Handler{options: options, metrics: m, limits: newLimits(options.Clock), places: newPlaces(), keys: newKeys(options.Clock, options.Secrets), nobody: make([]byte, sha256.Size)}
	if _, err := rand.Read(h.nobody); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return h, nil
}

// Mux serves the one path; other paths and methods are told 404. So is another way to
// write that path, as with //, which the library would answer with a redirect: senders
// follow one with a GET and without the body.
func (h *Handler) Mux() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Path, h)
	none := func(w http.ResponseWriter, _ *http.Request) { h.answer(w, resultRefused, http.StatusNotFound) }
	mux.HandleFunc("/", none)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path {
			none(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// ServeHTTP answers a call: 202 when it was signed, 404 when it was not, whatever the
// reason; 413 and 429 say only what the caller knows himself. The signature comes
// before the limit, which counts failures alone.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case len(r.URL.Path) > maxPathBytes:
		h.answer(w, resultRefused, http.StatusNotFound)
		return
	case r.ContentLength > MaxBodyBytes:
		h.answer(w, resultLarge, http.StatusRequestEntityTooLarge)
		return
	case !wellFormed(r.Header):
		h.refuse(w, r, http.StatusNotFound)
		return
	}
	leave, err := h.places.enter(r.Context(), r.URL.Path)
	if err != nil {
		h.limited(w)
		return
	}
	defer leave()
	// Not every writer has a connection with a deadline; the listener's holds there.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		h.refuse(w, r, http.StatusBadRequest)
		return
	}
	source, hook, key := h.find(r.Context(), r)
	sum := hmac.New(sha256.New, key)
	if _, err := io.Copy(sum, http.MaxBytesReader(w, r.Body, MaxBodyBytes)); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			h.answer(w, resultLarge, http.StatusRequestEntityTooLarge)
			return
		}
		h.refuse(w, r, http.StatusBadRequest)
		return
	}
	header := headerGeneric
	if hook == v1alpha1.WebhookGitHub {
		header = headerGitHub
	}
	if !signed(r.Header.Get(header), sum.Sum(nil)) || source == nil {
		h.refuse(w, r, http.StatusNotFound)
		return
	}
	if hook != v1alpha1.WebhookGitHub || r.Header.Get(headerGitHubEvent) != eventPing {
		h.options.Told(source)
	}
	h.answer(w, resultTaken, http.StatusAccepted)
}

// refuse counts a failure.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, code int) {
	if !h.limits.allow(r.URL.Path + " " + caller(r)) {
		h.limited(w)
		return
	}
	h.answer(w, resultRefused, code)
}

func (h *Handler) limited(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	h.answer(w, resultLimited, http.StatusTooManyRequests)
}

func (h *Handler) answer(w http.ResponseWriter, result string, code int) {
	h.metrics.calls.WithLabelValues(result).Inc()
	http.Error(w, http.StatusText(code), code)
}

// find gives the source that a call is about, the form of its calls, and the key
// that they are signed with. Without one, source is nil and the key is nobody's.
func (h *Handler) find(ctx context.Context, r *http.Request) (source v1alpha1.Source, hook string, key []byte) {
	none := func(why string) (v1alpha1.Source, string, []byte) {
		logr.FromContextOrDiscard(ctx).V(1).Info("A webhook's call cannot be checked", "path", r.URL.Path, "cause", why)
		return nil, "", h.nobody
	}
	kind := kindOf(r.PathValue("kind"))
	found, ok := h.options.Sources.Source(kind, types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")})
	if !ok {
		return none("there is no such source")
	}
	wanted := found.SourceWebhook()
	if wanted == nil {
		return none("the source has no webhook")
	}
	secret := wanted.SecretRef.Name
	if !slices.Contains(found.SourceStatus().CheckedSecrets, secret) {
		return none("the use of the Secret was not checked")
	}
	token, err := h.keys.get(ctx, types.NamespacedName{Namespace: found.GetNamespace(), Name: secret})
	if err != nil {
		return none(err.Error())
	}
	return found, wanted.Type, token
}

// kindOf finds the kind that a path names, in whatever case.
func kindOf(text string) string {
	for _, kind := range v1alpha1.Kinds() {
		if strings.EqualFold(kind, text) {
			return kind
		}
	}
	return ""
}

// wellFormed reports that a call has what could be a signature, in one form or the
// other.
func wellFormed(header http.Header) bool {
	for _, name := range []string{headerGeneric, headerGitHub} {
		if text, ok := strings.CutPrefix(header.Get(name), signaturePrefix); ok && len(text) == hex.EncodedLen(sha256.Size) {
			return true
		}
	}
	return false
}

// signed compares a header with the sum, in constant time.
func signed(header string, sum []byte) bool {
	text, ok := strings.CutPrefix(header, signaturePrefix)
	if !ok {
		return false
	}
	given, err := hex.DecodeString(text)
	return err == nil && hmac.Equal(given, sum)
}

// caller is the address that a call came from: that of a proxy before the hub, if
// there is one.
func caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
