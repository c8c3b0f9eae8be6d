// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"kumodo.io/convoy/hub/source/fault"
)

// Fetched is what a fetch brought.
type Fetched struct {
	// TransferBytes that came over the network.
	TransferBytes int64 `json:"transferBytes"`
	// Files and Bytes of the snapshot.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Fetch gets one commit and writes its tree as a snapshot into the folder dir,
// which exists and is empty. Only that commit is asked for, without its history,
// where the server allows that; otherwise all branches and tags, within the same
// limits.
func Fetch(ctx context.Context, remote Remote, commit, dir string) (fetched Fetched, err error) {
	if !IsCommit(commit) {
		return Fetched{}, fault.Failf(fault.ClassInvalid, "%q is no commit", fault.Clean(commit))
	}
	conn, err := remote.connect(ctx)
	if err != nil {
		return Fetched{}, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	request, err := plan(ctx, conn, commit)
	if err != nil {
		return Fetched{}, err
	}
	packName := filepath.Join(dir, "pack")
	fetched.TransferBytes, err = download(ctx, conn, request, packName)
	if err != nil {
		return Fetched{}, err
	}
	pack, err := openPack(packName)
	if err != nil {
		return Fetched{}, err
	}
	defer func() { err = errors.Join(err, pack.close(), os.Remove(packName)) }()
	if err := pack.index(); err != nil {
		return Fetched{}, err
	}
	fetched.Files, fetched.Bytes, err = extract(pack, plumbing.NewHash(commit), dir)
	return fetched, err
}

// leads reports the refs whose histories may have a commit that is the tip of none.
func leads(name string) bool {
	return strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") || name == "HEAD"
}

// plan decides what to ask for.
func plan(ctx context.Context, conn connection, commit string) (*request, error) {
	capabilities, refs, err := listRefs(ctx, conn, func(name, hash string) bool {
		return hash == commit || leads(name)
	})
	if err != nil {
		return nil, err
	}
	r := &request{wants: []string{commit}, shallow: capabilities["shallow"]}
	for _, ref := range refs {
		if ref.Commit == commit {
			return r, nil
		}
	}
	if capabilities["allow-reachable-sha1-in-want"] || capabilities["allow-any-sha1-in-want"] {
		r.byName = true
		return r, nil
	}
	// The commit is not at the tip of anything and may not be asked for by name: it
	// can only come along with what leads to it.
	r = &request{}
	seen := map[string]bool{}
	for _, ref := range refs {
		if !seen[ref.Commit] {
			seen[ref.Commit] = true
			r.wants = append(r.wants, ref.Commit)
		}
	}
	if len(r.wants) == 0 {
		return nil, fault.Failf(fault.ClassNotFound, "commit %s is not in the repository", commit)
	}
	if len(r.wants) > maxWants {
		return nil, fault.Failf(fault.ClassTooLarge, "commit %s is at the tip of no ref, the server does not give it by name, and there are more than %d refs that may lead to it", commit, maxWants)
	}
	return r, nil
}

type request struct {
	wants   []string
	shallow bool
	byName  bool // for a commit that is at the tip of nothing
}

// text is the request as it goes over the wire.
func (r *request) text() ([]byte, error) {
	var b bytes.Buffer
	e := pktline.NewEncoder(&b)
	capabilities := " side-band-64k ofs-delta no-progress agent=git/convoy"
	for _, want := range r.wants {
		if err := e.EncodeString("want " + want + capabilities + "\n"); err != nil {
			return nil, err
		}
		capabilities = ""
	}
	if r.shallow {
		if err := e.EncodeString("deepen 1\n"); err != nil {
			return nil, err
		}
	}
	err := errors.Join(e.Flush(), e.EncodeString("done\n"))
	return b.Bytes(), err
}

// download writes the pack that the server sends to a file.
func download(ctx context.Context, conn connection, request *request, name string) (n int64, err error) {
	text, err := request.text()
	if err != nil {
		return 0, err
	}
	stream, err := conn.upload(ctx, text)
	if err != nil {
		return 0, err
	}
	counted := &limited{r: stream, left: MaxTransferBytes, limit: MaxTransferBytes, what: "the fetch"}
	if err := prelude(counted, request.shallow); err != nil {
		var said *pktline.ErrorLine
		if request.byName && errors.As(err, &said) {
			return 0, fault.Failf(fault.ClassNotFound, "commit %s is not in the repository, or no branch and no tag leads to it any more", request.wants[0])
		}
		return 0, streamError(ctx, err)
	}
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, sideband.NewDemuxer(sideband.Sideband64k, counted))
	if err != nil {
		return 0, streamError(ctx, err)
	}
	return MaxTransferBytes - counted.left, nil
}

// prelude reads what comes before the pack: the shallow section up to its flush
// packet, if one was asked for, and the NAK.
func prelude(r io.Reader, shallow bool) error {
	lines := pktline.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSuffix(string(lines.Bytes()), "\n")
		switch {
		case line == "" && shallow:
			shallow = false
		case shallow && (strings.HasPrefix(line, "shallow ") || strings.HasPrefix(line, "unshallow ")):
		case !shallow && line == "NAK":
			return nil
		default:
			return fmt.Errorf("the server answers %q", fault.Clean(line))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}
