// Reads manifests with the code of those who will read them, and refuses what that does not know: manifests COMPOSE_FILE KUBERNETES_FILE.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The types of the manifest's objects, which are all that it may have.
var types = map[string]func() any{
	"v1/Service":          func() any { return &core.Service{} },
	"v1/ServiceAccount":   func() any { return &core.ServiceAccount{} },
	"apps/v1/StatefulSet": func() any { return &apps.StatefulSet{} },
}

// compose loads the file as Docker Compose does, with its schema, and counts the services.
func compose(path string) (int, error) {
	options, err := cli.NewProjectOptions([]string{path})
	if err != nil {
		return 0, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return 0, err
	}
	return len(project.Services), nil
}

// kubernetes decodes each object into Kubernetes' own type; a field that the type lacks is an error.
func kubernetes(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			return 0, err
		}
		name := head.APIVersion + "/" + head.Kind
		if types[name] == nil {
			return 0, fmt.Errorf("%s is no type that this check knows", name)
		}
		if err := yaml.UnmarshalStrict(document, types[name]()); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		count++
	}
	return count, nil
}

func main() {
	for at, check := range []func(string) (int, error){compose, kubernetes} {
		path := os.Args[at+1]
		count, err := check(path)
		if err != nil || count == 0 {
			fmt.Fprintf(os.Stderr, "%s: %d found, %v\n", path, count, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d services or objects\n", path, count)
	}
}
