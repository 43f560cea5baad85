package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d policyCommands) replayCommand() *cobra.Command {
	var since, file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Test the rules against recorded calls, and show which would get another verdict",
		Long: `Test the rules in force, or those of a file like drawbridge.toml, against recorded calls. The command
prints the calls that would get another verdict (allow, ask or deny), and the rule that decides.
Nothing is called. It uses the present configuration and the recorded arguments. If a verdict depends
on a value that was not recorded, such as a secret, the call is reported as one that cannot be judged.

The exit code is 3 if a verdict differs, and 0 if none differs.`,
		Example: `  drawbridge policy replay --since 168h
  drawbridge policy replay --since 2026-03-01 --file stricter.toml
  drawbridge policy replay --json | jq -r '.changed[] | .id'`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := parseTime(since, time.Now())
			if err != nil {
				return admin.UserError("--since: " + err.Error())
			}
			r, err := d.Admin().ReplayRules(cmd.Context(), d.WithGateway, file, from)
			if err != nil {
				return err
			}
			return d.printReplayResult(r, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "24h",
		"only calls since that `TIME`: 14:02, \"2006-01-02 15:04\", or an age such as 2h")
	flags.StringVar(&file, "file", "", "the rules of that `FILE` instead of those in force")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// printReplayResult prints the result of a replay, which evaluates the rules for recorded calls. The error is
// ExitError(3) if a call would get another verdict now.
func (d policyCommands) printReplayResult(r gateway.ReplayReport, asJSON bool) error {
	var err error
	if asJSON {
		err = PrintJSON(d.Out, r)
	} else {
		err = d.printReplay(r)
	}
	if err != nil {
		return err
	}
	if len(r.Changed) > 0 {
		return ExitError(3)
	}
	return nil
}

func (d policyCommands) printReplay(r gateway.ReplayReport) error {
	changes := map[string]int{}
	if len(r.Changed) > 0 {
		tw := NewTable(d.Out)
		fmt.Fprintln(tw, "AT\tCALLER\tMETHOD\tTOOL\tBEFORE\tNOW\tBY\tID")
		for _, c := range r.Changed {
			changes[c.Before+" → "+c.Now]++
			fmt.Fprintln(tw, strings.Join(replayColumns(c), "\t"))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	d.printUnclear(r.Unclear)
	safetext.Fprintf(d.Out, "since %s: %d as before, %d with another verdict", formatLocalTime(r.Since),
		r.Same, len(r.Changed))
	if len(changes) > 0 {
		safetext.Fprintf(d.Out, " (%s)", formatCounts(changes))
	}
	safetext.Fprintf(d.Out, ", %d that cannot be judged\n", len(r.Unclear))
	if r.Unknown+r.Barred > 0 {
		unknown := formatCount(r.Unknown, "call") + " to unknown tools"
		if r.Unknown == 1 {
			unknown = "1 call to an unknown tool"
		}
		safetext.Fprintf(d.Out, "not compared: %s, %s refused for another reason\n", unknown,
			formatCount(r.Barred, "call"))
	}
	return nil
}

// replayColumns returns the cells of a call whose verdict changed.
func replayColumns(c gateway.ReplayedCall) []string {
	who := c.Caller.Principal
	if c.Caller.Client != "" {
		who += " (" + c.Caller.Client + ")"
	}
	now, by := c.Now, "default_effect"
	if c.Hidden {
		now += " (hidden)"
	}
	if c.Rule > 0 {
		by = fmt.Sprintf("rule %d, %s", c.Rule, c.RuleAt)
	}
	row := []string{formatLocalTime(c.At), who, c.Method, c.Card, c.Before, now, by, c.ID}
	for i, cell := range row {
		if row[i] = safetext.Line(cell); cell == "" {
			row[i] = "-"
		}
	}
	return row
}

// printUnclear prints each reason why calls cannot be judged, with the number of such calls and the ID of the last one.
func (d policyCommands) printUnclear(calls []gateway.ReplayedCall) {
	missing, last := map[string]int{}, map[string]string{}
	for _, c := range calls {
		missing[c.Why]++
		last[c.Why] = c.ID
	}
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		safetext.Fprintf(d.Out, "cannot be judged: %d, such as %s: %s\n", missing[why], last[why], safetext.Line(why))
	}
}

// formatCounts returns each text with its count, sorted by text.
func formatCounts(all map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s: %d", what, all[what]))
	}
	return strings.Join(parts, ", ")
}
