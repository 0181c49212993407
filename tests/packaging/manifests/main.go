// Reads manifests with the code of those who will read them, and refuses what that does not know: manifests COMPOSE_FILE KUBERNETES_FILE.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// The types of the manifest's objects, which are all that it may have. MPIJob is the MPI operator's own type.
var types = map[string]func() any{
	"v1/Service":                         func() any { return &core.Service{} },
	"v1/ServiceAccount":                  func() any { return &core.ServiceAccount{} },
	"v1/PersistentVolumeClaim":           func() any { return &core.PersistentVolumeClaim{} },
	"apps/v1/StatefulSet":                func() any { return &apps.StatefulSet{} },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return &networking.NetworkPolicy{} },
	"kubeflow.org/v2beta1/MPIJob":        func() any { return &mpi.MPIJob{} },
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

// kubernetes decodes each object into its own type; a field that the type lacks is an error, and so is what the MPI operator refuses.
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
		object := types[name]()
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if job, isJob := object.(*mpi.MPIJob); isJob {
			mpi.SetDefaults_MPIJob(job)
			if err := validation.ValidateMPIJob(job).ToAggregate(); err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
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
