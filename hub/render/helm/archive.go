// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// unpackedSuffix is put on the name of a subchart's archive to name the folder that
// its files come into. Helm takes the names of charts from Chart.yaml alone.
const unpackedSuffix = ".unpacked"

// unpacker counts what a chart has, all archives in it unpacked.
type unpacker struct {
	files int
	bytes int64
}

// count adds one file.
func (u *unpacker) count(name string, size int) error {
	if size > MaxChartFileBytes {
		return fmt.Errorf("%s: %w: %d MiB, a file of a chart may have %d MiB (.helmignore can leave it out)", name, ErrTooLarge, size>>20, MaxChartFileBytes>>20)
	}
	if u.files++; u.files > MaxChartFiles {
		return fmt.Errorf("%s: %w: the chart has more than %d files", name, ErrTooLarge, MaxChartFiles)
	}
	if u.bytes += int64(size); u.bytes > MaxChartBytes {
		return fmt.Errorf("%s: %w: the chart has more than %d MiB", name, ErrTooLarge, MaxChartBytes>>20)
	}
	return nil
}

// archive unpacks a .tgz: the files below its one folder, by their names in it.
func (u *unpacker) archive(name string, data []byte) ([]*loader.BufferedFile, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: it is not compressed with gzip", name, ErrArchive)
	}
	var list []*loader.BufferedFile
	// What is skipped while the next header is looked for costs time as well.
	limited := &io.LimitedReader{R: unzipped, N: MaxChartBytes + MaxChartFiles<<10}
	for reader := tar.NewReader(limited); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if limited.N <= 0 {
			return nil, fmt.Errorf("%s: %w: unpacked, it has more than %d MiB", name, ErrTooLarge, MaxChartBytes>>20)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", name, ErrArchive, err)
		}
		file, err := u.member(name, header, reader)
		if err != nil {
			return nil, err
		}
		if file != nil {
			list = append(list, file)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w: there are no files in it", name, ErrArchive)
	}
	return list, nil
}

// member reads one entry; nil of one that is no file.
func (u *unpacker) member(name string, header *tar.Header, r io.Reader) (*loader.BufferedFile, error) {
	shown := fmt.Sprintf("%s, %.200q", name, header.Name)
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil, nil
	case tar.TypeReg:
	case tar.TypeSymlink, tar.TypeLink:
		return nil, fmt.Errorf("%s: %w: it is a link, and a chart may have none", shown, ErrArchive)
	default:
		return nil, fmt.Errorf("%s: %w: it is neither a file nor a folder", shown, ErrArchive)
	}
	// Some are made with the separators of another system.
	whole := strings.ReplaceAll(header.Name, `\`, "/")
	_, inside, found := strings.Cut(whole, "/")
	clean := path.Clean(inside)
	switch {
	case !found:
		return nil, fmt.Errorf("%s: %w: its files must be in a folder", shown, ErrArchive)
	case strings.HasPrefix(whole, "/"), path.IsAbs(inside), clean == ".", clean == "..", strings.HasPrefix(clean, "../"), drive(clean):
		return nil, fmt.Errorf("%s: %w: it leads out of the chart", shown, ErrArchive)
	}
	if err := u.count(shown, int(header.Size)); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxChartFileBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", shown, ErrArchive, err)
	}
	return &loader.BufferedFile{Name: clean, Data: bytes.TrimPrefix(data, utf8Mark)}, nil
}

// drive reports a name that begins with the letter of a drive.
func drive(name string) bool {
	return len(name) >= 3 && name[1] == ':' && name[2] == '/'
}

// subcharts replaces the archives in charts folders by what is in them, so that all
// of a chart is under one account.
func (u *unpacker) subcharts(chart string, list []*loader.BufferedFile, depth int) ([]*loader.BufferedFile, error) {
	var all []*loader.BufferedFile
	for _, file := range list {
		nesting, packed := subchart(file.Name)
		if depth+nesting > MaxNesting {
			return nil, fmt.Errorf("%s: %s: %w: charts are nested more than %d deep", chart, file.Name, ErrTooLarge, MaxNesting)
		}
		if !packed {
			all = append(all, file)
			continue
		}
		inner, err := u.archive(chart+", "+file.Name, file.Data)
		if err != nil {
			return nil, err
		}
		if inner, err = u.subcharts(chart+", "+file.Name, inner, depth+nesting); err != nil {
			return nil, err
		}
		for _, member := range inner {
			all = append(all, &loader.BufferedFile{Name: file.Name + unpackedSuffix + "/" + member.Name, Data: member.Data})
		}
	}
	return all, nil
}

// subchart says how many charts deep a file is, and whether it is the archive of one.
func subchart(name string) (nesting int, packed bool) {
	for {
		rest, ok := strings.CutPrefix(name, "charts/")
		if !ok || strings.IndexAny(rest, "_.") == 0 {
			return nesting, false
		}
		nesting++
		_, inside, folder := strings.Cut(rest, "/")
		if !folder {
			return nesting, path.Ext(rest) == ".tgz"
		}
		name = inside
	}
}
