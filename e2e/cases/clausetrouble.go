// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// Of a source that has credentials: names of its Secrets, and the passwords that it has
// in a row.
const (
	login          = "private-login"
	authority      = "private-ca"
	firstPassword  = "first-token-of-the-case"
	secondPassword = "second-token-of-the-case"
)

// private moves the source of a Release to a server of the case's own, which asks for
// a password and may be in trouble, and gives the server.
func (p *Player) private(ctx context.Context, r *release) (*gitserver.Server, error) {
	if p.server != nil {
		p.server.Before(gitserver.LetIn(p.password))
		return p.server, nil
	}
	server, err := gitserver.Start(ctx, p.world.gitDir(), "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("private source: %w", err)
	}
	p.server = server
	if err := p.setPassword(ctx, firstPassword); err != nil {
		return nil, err
	}
	server.Before(gitserver.LetIn(p.password))
	for _, t := range p.targets {
		secret := map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": authority, "namespace": t.namespace},
			"stringData": map[string]any{"ca.crt": string(server.CA())},
		}
		if err := p.world.Hub.ApplyObjects(ctx, secret); err != nil {
			return nil, err
		}
	}
	err = p.change(ctx, r, fmt.Sprintf(`[{"op":"replace","path":"/spec/url","value":%q},{"op":"add","path":"/spec/secretRef","value":{"name":%q}},{"op":"add","path":"/spec/caSecretRef","value":{"name":%q}}]`,
		server.URL(p.source(r)), login, authority))
	if err != nil {
		return nil, err
	}
	p.say("# the source has moved to a server that asks for a password\n")
	return server, p.follow(ctx, r)
}

// setPassword writes it into the Secret of the source.
func (p *Player) setPassword(ctx context.Context, password string) error {
	for _, t := range p.targets {
		secret := map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": login, "namespace": t.namespace},
			"stringData": map[string]any{"username": "git", "password": password},
		}
		if err := p.world.Hub.ApplyObjects(ctx, secret); err != nil {
			return err
		}
	}
	p.password = password
	return nil
}

func (p *Player) tokenExpires(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	server, err := p.private(ctx, r)
	if err != nil {
		return "", err
	}
	server.Before(gitserver.LetIn("another " + p.password))
	return "the server takes another password now", p.follow(ctx, r)
}

func (p *Player) authorityUnknown(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	if _, err := p.private(ctx, r); err != nil {
		return "", err
	}
	if err := p.change(ctx, r, `[{"op":"remove","path":"/spec/caSecretRef"}]`); err != nil {
		return "", err
	}
	return "caSecretRef was taken away; the password is right again", p.follow(ctx, r)
}

func (p *Player) authorityKnown(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	if _, err := p.private(ctx, r); err != nil {
		return "", err
	}
	if err := p.change(ctx, r, fmt.Sprintf(`[{"op":"add","path":"/spec/caSecretRef","value":{"name":%q}}]`, authority)); err != nil {
		return "", err
	}
	return "caSecretRef is there again", p.follow(ctx, r)
}

func (p *Player) serverLimits(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	server, err := p.private(ctx, r)
	if err != nil {
		return "", err
	}
	seconds, err := strconv.Atoi(m[1])
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrCase, err)
	}
	wait := min(time.Duration(seconds)*time.Second, longestPass)
	server.Before(gitserver.Later(wait))
	over := time.Now().Add(wait)
	if err := p.follow(ctx, r); err != nil {
		return "", err
	}
	before := server.Requests()
	if err := p.pass(ctx, time.Until(over)); err != nil {
		return "", err
	}
	p.asked = server.Requests() - before
	server.Before(gitserver.LetIn(p.password))
	return fmt.Sprintf("in the rest of the %s it was asked %d times; it answers again", wait, p.asked), p.follow(ctx, r)
}

func (p *Player) nameUnknown(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	server, err := p.private(ctx, r)
	if err != nil {
		return "", err
	}
	if err := p.change(ctx, r, `[{"op":"replace","path":"/spec/url","value":"https://no-such-host.invalid/app.git"}]`); err != nil {
		return "", err
	}
	if err := p.follow(ctx, r); err != nil {
		return "", err
	}
	if err := p.show(ctx, r); err != nil {
		return "", err
	}
	if err := p.change(ctx, r, fmt.Sprintf(`[{"op":"replace","path":"/spec/url","value":%q}]`, server.URL(p.source(r)))); err != nil {
		return "", err
	}
	return "the URL had another name meanwhile", nil
}

func (p *Player) serverSilent(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	server, err := p.private(ctx, r)
	if err != nil {
		return "", err
	}
	server.Before(gitserver.Never)
	began := time.Now()
	err = p.follow(ctx, r)
	return "it takes connections and is silent; the hub said so after " + time.Since(began).Round(time.Second).String(), err
}

func (p *Player) credentialsReplaced(ctx context.Context, _ []string) (string, error) {
	r := p.releases[0]
	server, err := p.private(ctx, r)
	if err != nil {
		return "", err
	}
	server.Before(gitserver.LetIn(secondPassword))
	if err := p.follow(ctx, r); err != nil {
		return "", err
	}
	if err := p.show(ctx, r); err != nil {
		return "", err
	}
	// Nobody asks for a sync: the hub finds out by itself.
	if err := p.setPassword(ctx, secondPassword); err != nil {
		return "", err
	}
	began := time.Now()
	for _, t := range p.targets {
		wait, cancel := context.WithTimeout(ctx, patience)
		_, err := harness.WaitFor(wait, p.world.Hub.Plane.Dynamic(), install.Releases, t.namespace, r.name, harness.HasCondition(sourcev1alpha1.ConditionReady, "True", ""))
		cancel()
		if err != nil {
			p.say("# it does not become Ready: %v\n", err)
		}
	}
	return "the hub has found out after " + time.Since(began).Round(time.Second).String(), p.settle(ctx, r)
}

// scaledHistory stands for a history that would take minutes to write, in bytes.
const scaledHistory = 96 << 20

func (p *Player) repositoryGrows(ctx context.Context, m []string) (string, error) {
	r := p.releases[0]
	if _, err := p.private(ctx, r); err != nil {
		return "", err
	}
	count, err := strconv.Atoi(m[2])
	if err != nil || count > maxGrown {
		return "", fmt.Errorf("%w: %s files", ErrCase, m[2])
	}
	dir := filepath.Join(r.repository.Dir(), "grown")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("work tree: %w", err)
	}
	noise := make([]byte, scaledHistory)
	rand.Read(noise)
	if err := os.WriteFile(filepath.Join(dir, "noise"), noise, 0o644); err != nil {
		return "", fmt.Errorf("work tree: %w", err)
	}
	if _, err := r.repository.Push(ctx, "noise"); err != nil {
		return "", err
	}
	if err := os.Remove(filepath.Join(dir, "noise")); err != nil {
		return "", fmt.Errorf("work tree: %w", err)
	}
	for i := range count {
		folder := filepath.Join(dir, strconv.Itoa(i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return "", fmt.Errorf("work tree: %w", err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)+".txt"), []byte(strconv.Itoa(i)), 0o644); err != nil {
			return "", fmt.Errorf("work tree: %w", err)
		}
	}
	if r.commit, err = r.repository.Push(ctx, "grown"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d files, and %d MiB of history in the place of %s", count, scaledHistory>>20, m[1]), p.follow(ctx, r)
}

// show prints a Release in between.
func (p *Player) show(ctx context.Context, r *release) error {
	for _, t := range p.targets {
		if err := p.showRelease(ctx, t, r); err != nil {
			return err
		}
	}
	return nil
}
