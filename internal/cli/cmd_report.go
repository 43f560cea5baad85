package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) reportCommand() *cobra.Command {
	var o admin.ReportOptions
	var profile string
	cmd := &cobra.Command{
		Use:   "report [FILE]",
		Short: "Write what a bug report needs to one file, without secrets",
		Long: `Write what a bug report needs to one file: versions, the findings of "drawbridge doctor", the states of
the hub and of the servers, the settings, counts of records, and the stacks of the hub. Nothing is sent.

It holds no secret: values of rows and settings, names and texts of servers, and arguments of calls are left
out. The file is a tar archive; look at it before you pass it on.`,
		Example: `  drawbridge report
  drawbridge report --profile cpu=10s slow.tar.gz`,
		Args: rangeArgs(0, 1, "the name of one file at most"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			path := fmt.Sprintf("drawbridge-report-%s.tar.gz", time.Now().Format("20060102-150405"))
			if len(args) > 0 {
				path = args[0]
			}
			if o.CPU, err = parseProfileFlag(profile); err != nil {
				return err
			}
			if o.Findings, err = a.readFindings(cmd); err != nil {
				return err
			}
			path = a.absolutePath(path)
			m, err := a.adminService().WriteReport(cmd.Context(), path, o)
			if err != nil {
				return err
			}
			safetext.Fprintf(a.Out, "✓ wrote %s\n", a.abbreviateHome(path))
			for _, p := range m.Parts {
				safetext.Fprintf(a.Out, "  %s: %s\n", p.Name, reportContents(p.Name))
			}
			safetext.Fprintln(a.Out, "Nothing was sent. Look at it (tar -xzOf FILE report.json), then attach it to your report.")
			return nil
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "", "add a CPU profile of the hub: `cpu=10s`, at most a minute")
	cmd.Flags().BoolVar(&o.Overwrite, "force", false, "replace an existing file")
	return cmd
}

// reportContents returns a description of a file in the report.
func reportContents(name string) string {
	switch name {
	case "report.json":
		return "versions, findings, states of the hub and the servers, settings, counts of records"
	case "goroutines.txt":
		return "the stacks of the hub"
	}
	return "a CPU profile of the hub (go tool pprof)"
}

// parseProfileFlag returns the duration in "cpu=10s"; 0 for an empty text.
func parseProfileFlag(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	kind, takes, _ := strings.Cut(text, "=")
	d, err := time.ParseDuration(takes)
	if kind != "cpu" || err != nil || d <= 0 || d > time.Minute {
		return 0, usageError{fmt.Errorf("--profile takes cpu=TIME, up to a minute, such as cpu=10s")}
	}
	return d, nil
}

// readFindings runs "doctor" and returns its findings. If the configuration cannot be read, the result has a finding
// about it.
func (a *app) readFindings(cmd *cobra.Command) (r admin.DoctorReport, err error) {
	var out bytes.Buffer
	quiet := *a
	quiet.Out = &out
	if err := quiet.runDoctor(cmd.Context(), false, true); err != nil && !errors.Is(err, errAlreadyPrinted) {
		return r, err
	}
	err = json.Unmarshal(out.Bytes(), &r)
	return r, err
}
