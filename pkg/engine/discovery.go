// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rediscover is the least time between two questions about one group and version.
const rediscover = 200 * time.Millisecond

// discovery knows where kinds live. It asks for one group and version at a time, so
// that a group whose server is down harms nobody else.
type discovery struct {
	target *target

	mu sync.Mutex
	// versions maps "group/version" to what it serves; guarded by mu.
	versions map[string]*groupVersion
}

// groupVersion is what one group and version serves.
type groupVersion struct {
	mu    sync.Mutex
	kinds map[string]resource
	asked time.Time
}

func newDiscovery(t *target) *discovery {
	return &discovery{target: t, versions: map[string]*groupVersion{}}
}

// find says where a kind lives. It answers errUnknownKind when the server says that
// it does not serve it; any other error means that it cannot be told now.
func (d *discovery) find(ctx context.Context, group, version, kind string) (resource, error) {
	d.mu.Lock()
	gv := d.versions[group+"/"+version]
	if gv == nil {
		gv = &groupVersion{}
		d.versions[group+"/"+version] = gv
	}
	d.mu.Unlock()

	gv.mu.Lock()
	defer gv.mu.Unlock()
	if r, ok := gv.kinds[kind]; ok {
		return r, nil
	}
	if gv.kinds == nil || d.target.clock.Since(gv.asked) > rediscover {
		kinds, err := d.ask(ctx, group, version)
		if err != nil {
			return resource{}, err
		}
		gv.kinds, gv.asked = kinds, d.target.clock.Now()
	}
	if r, ok := gv.kinds[kind]; ok {
		return r, nil
	}
	return resource{}, fmt.Errorf("%w: %s/%s %s", errUnknownKind, group, version, kind)
}

// findAny says where a kind of a group lives, in whatever version is served.
func (d *discovery) findAny(ctx context.Context, group, kind string) (resource, error) {
	if group == "" {
		return resource{}, fmt.Errorf("%w: %s", errUnknownKind, kind)
	}
	body, _, err := d.target.call(asOurselves(ctx), request{verb: "discover", method: http.MethodGet, path: "/apis/" + group})
	if apierrors.IsNotFound(err) {
		return resource{}, fmt.Errorf("%w: %s %s", errUnknownKind, group, kind)
	}
	if err != nil {
		return resource{}, fmt.Errorf("ask what group %s serves: %w", group, err)
	}
	var served metav1.APIGroup
	if err := json.Unmarshal(body, &served); err != nil {
		return resource{}, fmt.Errorf("decode what group %s serves: %w", group, err)
	}
	for _, v := range served.Versions {
		r, err := d.find(ctx, group, v.Version, kind)
		if err == nil || !errors.Is(err, errUnknownKind) {
			return r, err
		}
	}
	return resource{}, fmt.Errorf("%w: %s %s", errUnknownKind, group, kind)
}

// forget drops what is known of a group, after one of its kinds changed or was
// answered with NotFound.
func (d *discovery) forget(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.versions {
		if strings.HasPrefix(name, group+"/") {
			delete(d.versions, name)
		}
	}
}

func (d *discovery) ask(ctx context.Context, group, version string) (map[string]resource, error) {
	kinds := map[string]resource{}
	list, err := d.list(ctx, group, version)
	if err != nil {
		return nil, err
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") || r.Kind == "" {
			continue
		}
		kinds[r.Kind] = resource{group: group, version: version, plural: r.Name, kind: r.Kind, namespaced: r.Namespaced}
	}
	return kinds, nil
}

// list asks what a group serves in a version: nothing, when it is not served.
func (d *discovery) list(ctx context.Context, group, version string) (metav1.APIResourceList, error) {
	path := "/apis/" + group + "/" + version
	if group == "" {
		path = "/api/" + version
	}
	var list metav1.APIResourceList
	body, _, err := d.target.call(asOurselves(ctx), request{verb: "discover", method: http.MethodGet, path: path})
	if apierrors.IsNotFound(err) {
		return list, nil
	}
	if err != nil {
		return list, fmt.Errorf("ask what %s/%s serves: %w", group, version, err)
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return list, fmt.Errorf("decode what %s/%s serves: %w", group, version, err)
	}
	return list, nil
}
