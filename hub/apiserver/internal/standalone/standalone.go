// SPDX-License-Identifier: Apache-2.0

// Package standalone says who may do what on an API server that has no host
// cluster to ask: holders of a client certificate of the hub's CA, in one of two
// groups, and nobody else. It stands before the flow.
package standalone

import (
	"context"
	"crypto/x509"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// Groups that have rights.
const (
	GroupAdmin  = "convoy:admin"  // everything
	GroupViewer = "convoy:viewer" // get, list and watch
)

// Authenticator believes client certificates of the hub's CA that carry one of
// our groups. Agents have certificates of the same CA: they carry none, and are
// nobody here. No other group is taken over, so that no certificate can make
// its holder a member of system:masters.
func Authenticator(hubCA dynamiccertificates.CAContentProvider) authenticator.Request {
	return x509request.NewDynamic(hubCA.VerifyOptions, x509request.UserConversionFunc(userOf))
}

func userOf(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
	if len(chain) == 0 || chain[0].Subject.CommonName == "" {
		return nil, false, nil
	}
	var groups []string
	for _, g := range chain[0].Subject.Organization {
		if g == GroupAdmin || g == GroupViewer {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: chain[0].Subject.CommonName, Groups: groups}}, true, nil
}

// Authorizer lets admins do everything and viewers read. It denies the rest; it
// never leaves a decision to somebody else.
func Authorizer() authorizer.Authorizer { return authorizer.AuthorizerFunc(authorize) }

func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser() == nil {
		return authorizer.DecisionDeny, "nobody", nil
	}
	for _, g := range a.GetUser().GetGroups() {
		if g == GroupAdmin || g == GroupViewer && mayView(a) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionDeny, "only " + GroupAdmin + " may do everything and " + GroupViewer + " read", nil
}

// mayView: everything that is read, but for profiles, which show memory.
func mayView(a authorizer.Attributes) bool {
	return a.IsReadOnly() && (a.IsResourceRequest() || !strings.HasPrefix(a.GetPath(), "/debug"))
}
