// SPDX-License-Identifier: Apache-2.0

// Package install writes the YAML that installs an agent: what the plugin's join
// prints and what manifests/agent has as an example. It stands before the flow,
// where a cluster becomes one that orders can be delivered to.
package install

import (
	"bytes"
	_ "embed" // for the template
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode"
)

//go:embed agent.yaml.tmpl
var agentText string

var agentTemplate = template.Must(template.New("agent.yaml").
	Option("missingkey=error").
	Funcs(template.FuncMap{"quote": quote}).
	Parse(agentText))

// Agent is what one agent's installation differs in.
type Agent struct {
	// ClusterNamespace and ClusterName of the Cluster object on the hub; both are
	// names that Kubernetes accepted.
	ClusterNamespace, ClusterName string
	// HubID names the hub that the agent will obey.
	HubID string
	// Image of the agent.
	Image string
	// Token is the secret half: whoever has it can join as this Cluster, once.
	Token string
	// ExpiresAt is the end of the token.
	ExpiresAt string
}

// ExpiresAt formats the end of a token for Agent.
func ExpiresAt(end time.Time) string { return end.UTC().Format(time.RFC3339) }

// ErrNotPrintable means that a value would end the comment or string it stands in.
var ErrNotPrintable = errors.New("contains a control character")

// YAML returns the objects, in the order in which they are to be applied.
func (a Agent) YAML() ([]byte, error) {
	for field, value := range map[string]string{
		"cluster namespace": a.ClusterNamespace, "cluster name": a.ClusterName,
		"hub id": a.HubID, "image": a.Image, "expiry": a.ExpiresAt,
	} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return nil, fmt.Errorf("%s: %w", field, ErrNotPrintable)
		}
	}
	var out bytes.Buffer
	if err := agentTemplate.Execute(&out, a); err != nil {
		return nil, fmt.Errorf("writing the agent's manifests: %w", err)
	}
	return out.Bytes(), nil
}

// quote writes text as a JSON string, which YAML reads as the same string.
func quote(text string) (string, error) {
	quoted, err := json.Marshal(text)
	if err != nil {
		return "", fmt.Errorf("quoting: %w", err)
	}
	return string(quoted), nil
}
