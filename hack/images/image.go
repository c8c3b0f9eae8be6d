// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// user of the images: a number, so that a kubelet sees that it is not root.
const user = "65532:65532"

// labels of an image.
func (p program) labels() map[string]string {
	what := map[string]string{
		"hub":   "An aggregated API server with controllers and a gateway for agents",
		"agent": "Applies in its cluster what the hub ordered, keeps it true, reports",
	}
	return map[string]string{
		"org.opencontainers.image.title":       p.binary(),
		"org.opencontainers.image.description": what[p.name],
		"org.opencontainers.image.source":      "https://kumodo.io/convoy",
		"org.opencontainers.image.version":     p.version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
}

// image builds the layout of one program, and its archive.
func (p program) image(ctx context.Context) (err error) {
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return fmt.Errorf("make the layout: %w", err)
	}
	l, err := newLayout(filepath.Join(p.out, p.binary()))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "convoy-images-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	texts, err := p.beside(ctx)
	if err != nil {
		return err
	}
	files := map[string]entry{}
	for name, text := range texts {
		files[name] = fromBytes(text)
	}
	below, belowPlain, err := l.layer(files, p.created)
	if err != nil {
		return err
	}
	var images []v1.Descriptor
	for _, on := range p.platforms {
		binary, err := p.build(ctx, on, work)
		if err != nil {
			return err
		}
		image, err := p.manifest(l, on, binary, below, belowPlain)
		if err != nil {
			return err
		}
		images = append(images, image)
	}
	top := images[0]
	if len(images) > 1 {
		index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: images}
		if top, err = l.document(v1.MediaTypeImageIndex, index); err != nil {
			return err
		}
	}
	return p.finish(l, top)
}

// manifest writes the program's layer, the configuration and the manifest of an
// image for one platform.
func (p program) manifest(l *layout, on platform, binary string, below v1.Descriptor, belowPlain digest.Digest) (v1.Descriptor, error) {
	program, err := fromProgram(binary)
	if err != nil {
		return v1.Descriptor{}, err
	}
	above, abovePlain, err := l.layer(map[string]entry{p.binary(): program}, p.created)
	if err != nil {
		return v1.Descriptor{}, err
	}
	config, err := l.document(v1.MediaTypeImageConfig, v1.Image{
		Created:  &p.created,
		Platform: v1.Platform{OS: on.os, Architecture: on.arch},
		Config:   v1.ImageConfig{User: user, Entrypoint: []string{"/" + p.binary()}, WorkingDir: "/", Labels: p.labels()},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{belowPlain, abovePlain}},
		History: []v1.History{
			{Created: &p.created, CreatedBy: "CA certificates and licences"},
			{Created: &p.created, CreatedBy: "the program"},
		},
	})
	if err != nil {
		return v1.Descriptor{}, err
	}
	image, err := l.document(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config, Layers: []v1.Descriptor{below, above}, Annotations: p.labels(),
	})
	image.Platform = &v1.Platform{OS: on.os, Architecture: on.arch}
	return image, err
}

// finish names the image and writes the archive.
func (p program) finish(l *layout, top v1.Descriptor) error {
	top.Annotations = map[string]string{
		v1.AnnotationRefName: p.tag,
		// What containerd calls it when it imports the archive.
		"io.containerd.image.name": p.binary() + ":" + p.tag,
	}
	maps.Copy(top.Annotations, map[string]string{"org.opencontainers.image.version": p.version})
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{top}}
	err := errors.Join(
		l.write(v1.ImageLayoutFile, v1.ImageLayout{Version: v1.ImageLayoutVersion}),
		l.write(v1.ImageIndexFile, index),
	)
	if err != nil {
		return err
	}
	if err := l.archive(filepath.Join(p.out, p.binary()+".tar"), p.created); err != nil {
		return err
	}
	fmt.Printf("%s %s %s\n", top.Digest, p.binary()+":"+p.tag, p.shown(filepath.Join(p.out, p.binary()+".tar")))
	return nil
}

// shown is a path as somebody reads it who stands in the folder of the source; one
// outside of that is absolute.
func (p program) shown(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path // it was written there
	}
	if inside, err := filepath.Rel(p.root, whole); err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return whole
}
