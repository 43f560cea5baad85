package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// A versionReport is the version of the build, as --json prints it.
type versionReport struct {
	Version string `json:"version"`
	// Revision is the commit of the source. Modified reports whether the source had changes that were not committed.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildReport returns the version of the build: the version of the module, else the commit, else "dev".
func buildReport(info *debug.BuildInfo, ok bool) versionReport {
	r := versionReport{Version: "dev", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return r
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	switch {
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		r.Version = info.Main.Version
	case r.Revision != "":
		r.Version = r.Revision[:min(len(r.Revision), 12)]
		if r.Modified {
			r.Version += "+dirty"
		}
	}
	return r
}

// buildVersion returns the version of the build, or "dev".
func buildVersion() string { return buildReport(debug.ReadBuildInfo()).Version }

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return PrintJSON(a.Out, buildReport(debug.ReadBuildInfo()))
			}
			_, err := safetext.Fprintln(a.Out, "drawbridge", buildVersion())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the commit and the platform")
	return cmd
}
