// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
)

// What an artifact of the store says of itself.
const (
	ArtifactType = "application/vnd.convoy.render.v1"
	MediaObjects = "application/vnd.convoy.render.objects.v1+jsonl"
	MediaSealed  = "application/vnd.convoy.render.sealed.v1"

	annotationGone = "io.kumodo.convoy.gone"

	titleObjects = "objects.jsonl"
	titleSealed  = "sealed.bin"
)

// artifact is a manifest of the store, read.
type artifact struct {
	descriptor ocispec.Descriptor // of the manifest
	layer      ocispec.Descriptor
	stored     time.Time
	gone       bool
}

// layerOf describes a blob of a folder.
func layerOf(folder string, found digest.Digest, size int64) ocispec.Descriptor {
	layer := ocispec.Descriptor{MediaType: MediaObjects, Digest: found, Size: size, Annotations: map[string]string{ocispec.AnnotationTitle: titleObjects}}
	if folder == folderSealed {
		layer.MediaType, layer.Annotations[ocispec.AnnotationTitle] = MediaSealed, titleSealed
	}
	return layer
}

// compose writes a manifest; a blob that is gone has the empty layer in its place.
func compose(layer ocispec.Descriptor, at time.Time, gone bool) (ocispec.Descriptor, []byte, error) {
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: ArtifactType, Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{layer},
		Annotations: map[string]string{ocispec.AnnotationCreated: at.UTC().Format(time.RFC3339Nano)},
	}
	if gone {
		manifest.Layers = []ocispec.Descriptor{ocispec.DescriptorEmptyJSON}
		manifest.Annotations[annotationGone] = "true"
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	return ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: ArtifactType, Digest: digest.FromBytes(text), Size: int64(len(text)),
	}, text, nil
}

// read gives the artifact under a tag.
func (b *Backend) read(ctx context.Context, tag string) (found artifact, err error) {
	descriptor, body, err := b.repository.Manifests().FetchReference(ctx, tag)
	if err != nil {
		return artifact{}, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if descriptor.Size > maxManifestBytes {
		return artifact{}, fmt.Errorf("%s: %w: its manifest has more than %d bytes", tag, ErrForeign, maxManifestBytes)
	}
	text, err := content.ReadAll(body, descriptor)
	if err != nil {
		return artifact{}, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil || manifest.ArtifactType != ArtifactType || len(manifest.Layers) != 1 {
		return artifact{}, fmt.Errorf("%s: %w", tag, ErrForeign)
	}
	at, err := time.Parse(time.RFC3339Nano, manifest.Annotations[ocispec.AnnotationCreated])
	if err != nil {
		return artifact{}, fmt.Errorf("%s: %w: it does not say when it was put", tag, ErrForeign)
	}
	return artifact{descriptor: descriptor, layer: manifest.Layers[0], stored: at, gone: manifest.Annotations[annotationGone] != ""}, nil
}

// push puts a manifest under a tag. The layer is in the registry already.
func (b *Backend) push(ctx context.Context, tag string, layer ocispec.Descriptor, at time.Time, gone bool) (ocispec.Descriptor, error) {
	if err := pushEmpty(ctx, b.repository); err != nil {
		return ocispec.Descriptor{}, err
	}
	descriptor, text, err := compose(layer, at, gone)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	for attempt := 1; ; attempt++ {
		err := b.repository.PushReference(ctx, descriptor, bytes.NewReader(text), tag)
		if !unknown(err) || attempt == maxUnknown {
			return descriptor, err
		}
		// While somebody else puts the same blob, a registry may not know it for a moment.
		pause := time.NewTimer(unknownPause << (attempt - 1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return descriptor, errors.Join(context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}

// pushEmpty makes sure that the empty config is there, which each manifest names.
func pushEmpty(ctx context.Context, to content.Storage) error {
	there, err := to.Exists(ctx, ocispec.DescriptorEmptyJSON)
	if err != nil || there {
		return err
	}
	return already(to.Push(ctx, ocispec.DescriptorEmptyJSON, bytes.NewReader(ocispec.DescriptorEmptyJSON.Data)))
}

// already leaves out the error that says that a blob is there.
func already(err error) error {
	if errors.Is(err, errdef.ErrAlreadyExists) {
		return nil
	}
	return err
}
