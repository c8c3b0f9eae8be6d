// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"kumodo.io/convoy/hub/source/fault"
)

// Docker Hub has one name for people, another for its API, and a third in docker's
// own configuration.
const (
	dockerHub      = "docker.io"
	dockerHubIndex = "index.docker.io"
	dockerHubAPI   = "registry-1.docker.io"
)

// DockerAuth is what a docker configuration says about one registry.
type DockerAuth struct {
	Username, Password string
	// IdentityToken is exchanged for an access token; RegistryToken is one.
	IdentityToken, RegistryToken string
}

// None reports that there is nothing to send.
func (a DockerAuth) None() bool { return a == DockerAuth{} }

// ParseDocker reads a docker configuration for a repository, host/path. Of several
// entries for its host the one with the longest matching path is taken. Helper
// programs that a configuration names are not run.
func ParseDocker(config []byte, repository string) (DockerAuth, error) {
	if len(config) > maxDockerBytes {
		return DockerAuth{}, fault.Failf(fault.ClassTooLarge, "the docker configuration has more than %d KiB", maxDockerBytes>>10)
	}
	var file struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		// The error may quote a piece of it.
		return DockerAuth{}, fault.Failf(fault.ClassInvalid, "the docker configuration is no JSON of that kind")
	}
	if len(file.Auths) > maxDockerAuths {
		return DockerAuth{}, fault.Failf(fault.ClassTooLarge, "the docker configuration has more than %d registries", maxDockerAuths)
	}
	wanted, best, at := dockerKey(repository), "", -1
	for name := range file.Auths {
		key := dockerKey(name)
		if !covers(key, wanted) || len(key) < at || len(key) == at && name > best {
			continue
		}
		best, at = name, len(key)
	}
	if at < 0 {
		return DockerAuth{}, nil
	}
	entry := file.Auths[best]
	auth := DockerAuth{Username: entry.Username, Password: entry.Password, IdentityToken: entry.IdentityToken, RegistryToken: entry.RegistryToken}
	if entry.Auth != "" {
		text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(entry.Auth))
		user, password, ok := strings.Cut(string(text), ":")
		if err != nil || !ok {
			return DockerAuth{}, fault.Failf(fault.ClassInvalid, "the docker configuration's auth for %s is not base64 of user:password", fault.Clean(best))
		}
		auth.Username, auth.Password = user, strings.TrimRight(password, "\x00")
	}
	return auth, nil
}

// dockerKey brings a name of a configuration, or a repository, to host/path.
func dockerKey(name string) string {
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
	}
	host, path, _ := strings.Cut(strings.Trim(name, "/"), "/")
	host = strings.ToLower(host)
	if host == dockerHub || host == dockerHubAPI || host == dockerHubIndex {
		host = dockerHubIndex
		if path == "v1" || path == "v2" {
			path = ""
		}
	}
	// The default port is that of https; it may be written or not.
	host = strings.TrimSuffix(host, ":443")
	if path == "" || path == "v1" || path == "v2" {
		return host
	}
	return host + "/" + path
}

// covers reports that an entry is for a repository or for a folder above it.
func covers(key, repository string) bool {
	return key == repository || strings.HasPrefix(repository, key+"/")
}

// dockerAuth gives what belongs to a registry's host, as an OCI client asks for it: out
// of the docker configuration if there is one, else the user name and password if
// the host is the remote's own.
func (r Remote) dockerAuth(host, path string) (DockerAuth, error) {
	if len(r.Docker) > 0 {
		return ParseDocker(r.Docker, host+"/"+strings.Trim(path, "/"))
	}
	return DockerAuth{Username: r.Username, Password: r.Password}, nil
}

// Credentials gives user name and password for a host and a path on it.
func (r Remote) Credentials(host, path string) (user, password string, err error) {
	auth, err := r.dockerAuth(host, path)
	return auth.Username, auth.Password, err
}

// RegistryAuth gives what is sent to the registry at a host for a repository; nothing
// if a user name and password are for another host.
func (r Remote) RegistryAuth(own bool, host, path string) (DockerAuth, error) {
	if len(r.Docker) == 0 && !own {
		return DockerAuth{}, nil
	}
	return r.dockerAuth(host, path)
}

// For says whether a remote has credentials or a CA for a repository of a registry
// at a host: a docker configuration that names it, or that the remote's URL is at
// that host. Ports count.
func (r Remote) For(host, repository string) (Remote, bool, error) {
	if len(r.Docker) > 0 {
		auth, err := ParseDocker(r.Docker, host+"/"+repository)
		if err != nil || !auth.None() {
			return r, err == nil, err
		}
	}
	if r.URL == "" {
		return r, false, nil
	}
	own, err := ParseURL(r.URL)
	if err != nil {
		return r, false, err
	}
	return r, Origin(own) == Origin(&url.URL{Scheme: SchemeOCI, Host: host}), nil
}
