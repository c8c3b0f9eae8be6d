// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"kumodo.io/convoy/hub/source/archive"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
)

// Media types that are known by name. Others that end in tar+gzip are trees too.
const (
	mediaChart           = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	mediaChartProvenance = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	mediaDockerManifest  = "application/vnd.docker.distribution.manifest.v2+json"
	mediaDockerList      = "application/vnd.docker.distribution.manifest.list.v2+json"
	mediaDockerLayer     = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// layerKind says what is done with a layer.
type layerKind int

const (
	layerUnknown layerKind = iota
	layerTree              // tar+gzip of any files
	layerChart             // tar+gzip of one folder
	layerFile              // a YAML or JSON file
	layerNothing           // known, and not needed
)

// Fetch writes the content of an artifact as a snapshot into dir. A chart stands
// below a folder, named as in its archive.
func Fetch(ctx context.Context, remote endpoint.Remote, resolved Resolved, dir string) (Fetched, error) {
	return FetchChart(ctx, remote, resolved, "", dir)
}

// FetchChart is Fetch for an artifact that has to be a chart, whose folder gets the
// given name. Without a name it is Fetch.
func FetchChart(ctx context.Context, remote endpoint.Remote, resolved Resolved, chart, dir string) (Fetched, error) {
	repository, err := Open(ctx, remote)
	if err != nil {
		return Fetched{}, err
	}
	defer repository.Close()
	_, text, err := repository.Manifest(ctx, resolved.Digest)
	if err != nil {
		return Fetched{}, err
	}
	layers, err := ParseManifest(text)
	if err != nil {
		return Fetched{}, fault.Wrap(repository.Name()+" "+resolved.Digest, err)
	}
	if chart != "" && !slices.ContainsFunc(layers, func(l ocispec.Descriptor) bool { return kindOf(l) == layerChart }) {
		return Fetched{}, fault.Failf(fault.ClassInvalid, "%s %s is not a chart", repository.Name(), resolved.Digest)
	}
	tree, err := archive.Create(dir, resolved.Digest)
	if err != nil {
		return Fetched{}, err
	}
	f := fetch{repository: repository, tree: tree, chart: chart, transferred: int64(len(text))}
	for _, layer := range layers {
		if err := f.layer(ctx, layer); err != nil {
			return Fetched{}, errors.Join(fault.Wrap(repository.Name(), err), tree.Abort())
		}
	}
	if err := tree.Commit(); err != nil {
		return Fetched{}, err
	}
	return Fetched{TransferBytes: f.transferred, Files: tree.Files(), Bytes: tree.Bytes()}, nil
}

// ChartArchive gives the archive of a chart as it is in the registry, of at most
// limit bytes.
func ChartArchive(ctx context.Context, remote endpoint.Remote, resolved Resolved, limit int64) ([]byte, error) {
	repository, err := Open(ctx, remote)
	if err != nil {
		return nil, err
	}
	defer repository.Close()
	_, text, err := repository.Manifest(ctx, resolved.Digest)
	if err != nil {
		return nil, err
	}
	layers, err := ParseManifest(text)
	if err != nil {
		return nil, fault.Wrap(repository.Name()+" "+resolved.Digest, err)
	}
	for _, layer := range layers {
		if kindOf(layer) == layerChart {
			return repository.Blob(ctx, layer, limit)
		}
	}
	return nil, fault.Failf(fault.ClassInvalid, "%s %s is not a chart", repository.Name(), resolved.Digest)
}

// ParseManifest gives the layers of an artifact, all of which are of known kinds.
func ParseManifest(text []byte) ([]ocispec.Descriptor, error) {
	var manifest struct {
		MediaType string               `json:"mediaType"`
		Layers    []ocispec.Descriptor `json:"layers"`
		Manifests []json.RawMessage    `json:"manifests"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fault.Failf(fault.ClassInvalid, "the manifest is not the JSON of one")
	}
	switch manifest.MediaType {
	case "", ocispec.MediaTypeImageManifest, mediaDockerManifest:
	case ocispec.MediaTypeImageIndex, mediaDockerList:
		return nil, fault.Failf(fault.ClassInvalid, "an index of several artifacts: name one by its digest")
	default:
		return nil, fault.Failf(fault.ClassInvalid, "a manifest of the kind %s, which is not known", fault.Clean(manifest.MediaType))
	}
	switch {
	case len(manifest.Manifests) > 0:
		return nil, fault.Failf(fault.ClassInvalid, "an index of several artifacts: name one by its digest")
	case len(manifest.Layers) == 0:
		return nil, fault.Failf(fault.ClassInvalid, "an artifact without layers")
	case len(manifest.Layers) > maxLayers:
		return nil, fault.Failf(fault.ClassTooLarge, "an artifact of more than %d layers", maxLayers)
	}
	for _, layer := range manifest.Layers {
		switch {
		case kindOf(layer) == layerUnknown:
			return nil, fault.Failf(fault.ClassInvalid, "a layer of the kind %s: neither tar+gzip, nor YAML, nor a chart", fault.Clean(layer.MediaType))
		case !IsDigest(layer.Digest.String()):
			return nil, fault.Failf(fault.ClassInvalid, "a layer with a digest of a kind that is not supported")
		case layer.Size < 0 || layer.Size > archive.MaxArchiveBytes:
			return nil, fault.Failf(fault.ClassTooLarge, "a layer of more than %d MiB", archive.MaxArchiveBytes>>20)
		}
	}
	return manifest.Layers, nil
}

func kindOf(layer ocispec.Descriptor) layerKind {
	media, _, err := mime.ParseMediaType(layer.MediaType)
	if err != nil {
		return layerUnknown
	}
	switch media {
	case mediaChart:
		return layerChart
	case mediaChartProvenance:
		return layerNothing
	case mediaDockerLayer:
		return layerTree
	case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml":
		return layerFile
	}
	switch {
	case strings.HasSuffix(media, "tar+gzip"):
		return layerTree
	case strings.HasSuffix(media, "+yaml"):
		return layerFile
	}
	switch strings.ToLower(path.Ext(layer.Annotations[ocispec.AnnotationTitle])) {
	case ".yaml", ".yml", ".json": // a file that was pushed by its name
		return layerFile
	}
	return layerUnknown
}

type fetch struct {
	repository  *Repository
	tree        *archive.Tree
	chart       string
	transferred int64
	unnamed     int
}

func (f *fetch) layer(ctx context.Context, layer ocispec.Descriptor) error {
	kind := kindOf(layer)
	if kind == layerNothing {
		return nil
	}
	body, err := f.repository.remote.Blobs().Fetch(ctx, layer)
	if err != nil {
		return f.repository.explain(ctx, layer.Digest.String(), err)
	}
	defer body.Close()
	verified := content.NewVerifyReader(body, layer)
	stream := &endpoint.Limited{
		R: verified, Limit: layer.Size, What: "the layer " + layer.Digest.String(),
		Sort: func(err error) error { return f.repository.explain(ctx, layer.Digest.String(), err) },
	}
	if kind == layerFile {
		err = f.file(layer, stream)
	} else {
		place := archive.Below("")
		if kind == layerChart && f.chart != "" {
			place = archive.InFolder(f.chart)
		}
		err = f.tree.Unpack(ctx, stream, place)
	}
	f.transferred += stream.N
	if err != nil {
		return err
	}
	if err := verified.Verify(); err != nil {
		return f.repository.explain(ctx, layer.Digest.String(), err)
	}
	return nil
}

// file takes a layer that is a file by itself.
func (f *fetch) file(layer ocispec.Descriptor, r io.Reader) error {
	name := layer.Annotations[ocispec.AnnotationTitle]
	if name == "" {
		name = "manifest.yaml"
		if f.unnamed++; f.unnamed > 1 {
			name = fmt.Sprintf("manifest-%d.yaml", f.unnamed)
		}
	}
	if layer.Size > archive.MaxFileBytes {
		return fault.Failf(fault.ClassTooLarge, "%s: a file may have %d MiB", fault.Clean(name), archive.MaxFileBytes>>20)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return f.tree.Add(name, false, data)
}
