// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
)

func TestADockerConfigurationGivesTheCredentialsOfOneRegistry(t *testing.T) {
	t.Parallel()
	auth := base64.StdEncoding.EncodeToString([]byte("coded:pass:word"))
	config := fmt.Sprintf(`{"credsStore":"desktop","auths":{
		"ghcr.io":{"username":"host","password":"p"}, "ghcr.io/team":{"username":"team","password":"p"},
		"https://index.docker.io/v1/":{"username":"hub","password":"p"}, "https://coded.test":{"auth":%q},
		"port.test:5000":{"username":"port","password":"p"}, "token.test":{"identitytoken":"t"}, "null.test":{}}}`, auth)
	for _, c := range []struct {
		name, repository, want string
	}{
		{"the host", "ghcr.io/other/app", "host"},
		{"the longest path that matches", "ghcr.io/team/app", "team"},
		{"a path that only begins alike does not match", "ghcr.io/team-b/app", "host"},
		{"Docker Hub by its short name", "docker.io/library/nginx", "hub"},
		{"Docker Hub by the name of its API", "registry-1.docker.io/library/nginx", "hub"},
		{"coded, with a colon in the password", "coded.test/app", "coded"},
		{"a port belongs to the name", "port.test:5000/app", "port"},
		{"another port is another registry", "port.test:5001/app", ""},
		{"the port of https may be written", "ghcr.io:443/other/app", "host"},
		{"a host that only ends alike", "evil-ghcr.io/app", ""},
		{"nothing is known", "quay.io/app", ""},
		{"an entry without anything", "null.test/app", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := endpoint.ParseDocker([]byte(config), c.repository)
			if err != nil || got.Username != c.want {
				t.Errorf("got %q, %v, want %q", got.Username, err, c.want)
			}
			if c.want == "coded" && got.Password != "pass:word" {
				t.Errorf("password %q", got.Password)
			}
		})
	}
}

func TestADockerConfigurationThatCannotBeReadIsRefusedWithoutItsText(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"no JSON":            `secret-text`,
		"no base64":          `{"auths":{"a.test":{"auth":"secret-text!"}}}`,
		"no colon":           `{"auths":{"a.test":{"auth":"c2VjcmV0LXRleHQ="}}}`,
		"beyond the limit":   strings.Repeat(" ", 1<<20) + "{}",
		"auths is no object": `{"auths":["secret-text"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := endpoint.ParseDocker([]byte(config), "a.test/app")
			if class := fault.ClassOf(err); err == nil || class != fault.ClassInvalid && class != fault.ClassTooLarge {
				t.Errorf("got %v of class %s", err, class)
			}
			if err != nil && strings.Contains(err.Error(), "secret-text") {
				t.Errorf("the error quotes it: %v", err)
			}
		})
	}
}

func FuzzParseDocker(f *testing.F) {
	f.Add(`{"auths":{"a.test":{"auth":"YTpi"}}}`, "a.test/app")
	f.Add(`{"auths":{"https://index.docker.io/v1/":{}}}`, "docker.io/x")
	f.Fuzz(func(t *testing.T, config, repository string) {
		if _, err := endpoint.ParseDocker([]byte(config), repository); err != nil && fault.ClassOf(err) == fault.ClassUnreachable {
			t.Errorf("an error without a class: %v", err)
		}
	})
}
