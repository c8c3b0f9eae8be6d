// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/pkg/engine"
)

// secret is the part of a Secret that is read and written here.
type secret struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   secretMeta        `json:"metadata"`
	Type       string            `json:"type,omitempty"`
	Immutable  *bool             `json:"immutable,omitempty"`
	Data       map[string][]byte `json:"data,omitempty"`
}

type secretMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// client reads and writes the Secrets of one namespace, and nothing else.
type client struct {
	http      *http.Client
	base      *url.URL
	namespace string
}

func newClient(config *rest.Config, namespace string) (*client, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	config.Timeout = 0 // each call has its own
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the cluster: %w", err)
	}
	return &client{http: c, base: base, namespace: namespace}, nil
}

// do sends one request about a Secret and decodes the answer into out, if that is not nil.
func (c *client) do(ctx context.Context, method, name string, query url.Values, contentType, accept string, in, out any) error {
	err := c.send(ctx, method, name, query, contentType, accept, in, out)
	if err == nil {
		return nil
	}
	if made, ok := in.(*secret); ok {
		name = made.Metadata.Name
	}
	return &engine.StateError{Secret: strings.TrimSuffix(c.namespace+"/"+name, "/"), Write: method != http.MethodGet, Err: err}
}

func (c *client) send(ctx context.Context, method, name string, query url.Values, contentType, accept string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var body []byte
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode Secret %s: %w", name, err)
		}
		body = raw
	}
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/api/v1/namespaces/" + c.namespace + "/secrets"
	if name != "" {
		u.Path += "/" + name
	}
	u.RawQuery = query.Encode()
	for attempt := 0; ; attempt++ {
		err := c.once(ctx, method, u.String(), contentType, accept, body, out)
		wait, throttled := apierrors.SuggestsClientDelay(err)
		if !apierrors.IsTooManyRequests(err) || !throttled || attempt >= maxThrottled {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("secret %s: %w", name, context.Cause(ctx))
		case <-time.After(time.Duration(max(wait, 1)) * time.Second):
		}
	}
}

func (c *client) once(ctx context.Context, method, address, contentType, accept string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Accept", accept)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("speak to the API server: %w", engine.NoAnswer(err))
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		return readError(res, method)
	}
	answer := io.LimitReader(res.Body, maxAnswer)
	if out == nil {
		if _, err := io.Copy(io.Discard, answer); err != nil {
			return fmt.Errorf("read answer: %w", engine.NoAnswer(err))
		}
		return nil
	}
	if err := json.NewDecoder(answer).Decode(out); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

func readError(res *http.Response, method string) error {
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxErrorAnswer))
	if err != nil {
		return fmt.Errorf("read error answer %d: %w", res.StatusCode, engine.NoAnswer(err))
	}
	var status metav1.Status
	if json.Unmarshal(raw, &status) == nil && status.Kind == "Status" && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return apierrors.NewGenericServerResponse(res.StatusCode, method, schema.GroupResource{Resource: "secrets"}, "", "", 0, true)
}

const (
	typeJSON  = "application/json"
	typeMerge = "application/merge-patch+json"
	// acceptMeta leaves the content of objects out, acceptMetaList of lists.
	acceptMeta     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetaList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

func (c *client) get(ctx context.Context, name string) (*secret, error) {
	var s secret
	err := c.do(ctx, http.MethodGet, name, nil, "", typeJSON, nil, &s)
	return &s, err
}

func (c *client) create(ctx context.Context, s *secret) error {
	s.APIVersion, s.Kind = "v1", "Secret"
	return c.do(ctx, http.MethodPost, "", nil, typeJSON, acceptMeta, s, nil)
}

func (c *client) update(ctx context.Context, s *secret) error {
	s.APIVersion, s.Kind = "v1", "Secret"
	return c.do(ctx, http.MethodPut, s.Metadata.Name, nil, typeJSON, acceptMeta, s, nil)
}

func (c *client) patchData(ctx context.Context, name string, data map[string][]byte) error {
	return c.do(ctx, http.MethodPatch, name, nil, typeMerge, acceptMeta, map[string]any{"data": data}, nil)
}

// remove deletes a Secret; one that is not there is no error.
func (c *client) remove(ctx context.Context, name string) error {
	err := c.do(ctx, http.MethodDelete, name, nil, "", acceptMeta, nil, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// list calls yield for each Secret with a label, page by page, with or without
// content.
func (c *client) list(ctx context.Context, label string, content bool, yield func(*secret) error) error {
	accept := acceptMetaList
	if content {
		accept = typeJSON
	}
	query := url.Values{"labelSelector": {label}, "limit": {strconv.Itoa(pageSize)}}
	for {
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []secret        `json:"items"`
		}
		if err := c.do(ctx, http.MethodGet, "", query, "", accept, nil, &page); err != nil {
			return err
		}
		for i := range page.Items {
			if err := yield(&page.Items[i]); err != nil {
				return err
			}
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}
