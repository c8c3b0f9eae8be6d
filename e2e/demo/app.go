// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed app
var app embed.FS

// Names in the application.
const (
	shop = "shop"
	web  = "web"
)

var (
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	configMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
	services    = corev1.SchemeGroupVersion.WithResource("services")
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	kinds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	offers      = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "offers"}
)

// part is one object of the application.
type part struct {
	resource        schema.GroupVersionResource
	kind            string
	namespace, name string
	wave            int
}

var parts = []part{
	{namespaces, "Namespace", "", shop, 0},
	{kinds, "CustomResourceDefinition", "", "offers.shop.example.com", 0},
	{configMaps, "ConfigMap", shop, web, 1},
	{services, "Service", shop, web, 1},
	{deployments, "Deployment", shop, web, 1},
	{offers, "Offer", shop, "breakfast", 2},
}

// files returns what is committed: path to content.
func files() (map[string]string, error) {
	root, err := fs.Sub(app, "app")
	if err != nil {
		return nil, fmt.Errorf("reading the application: %w", err)
	}
	all := map[string]string{}
	err = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the application: %w", err)
	}
	return all, nil
}
