// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"kumodo.io/convoy/pkg/tunnel"
)

// Live asks a Cluster's agent how the objects of a Release are now, and calls yield for
// each as it comes, the worst first. It fails with ErrAway without a session, with
// tunnel.ErrNoRelease when the agent does not know the Release, with tunnel.ErrNoLive
// when it is too old to be asked, and when an answer is cut off. What an agent says is
// bounded, but need not be true. It takes CallTimeout at most.
func (s *Sessions) Live(ctx context.Context, clusterUID, releaseUID string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (end tunnel.LiveEnd, err error) {
	address := "http://agent/v1/live/" + url.PathEscape(releaseUID) + "?view=" + url.QueryEscape(string(view))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return end, fmt.Errorf("ask for live detail: %w", err)
	}
	resp, err := s.Call(clusterUID, r)
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode == http.StatusOK {
		return tunnel.ReadLive(resp.Body, yield) //nolint:wrapcheck // says what it is
	}
	err = tunnel.ReadProblem(resp)
	var status *tunnel.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		if status.Problem.Reason == tunnel.ReasonNoRelease {
			return end, tunnel.ErrNoRelease
		}
		return end, tunnel.ErrNoLive
	}
	return end, fmt.Errorf("ask for live detail: %w", err)
}
