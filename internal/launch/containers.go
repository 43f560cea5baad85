package launch

import (
	"fmt"
	"slices"
	"strings"
)

// inspectContainer returns findings about the arguments of a container engine. It reports options that weaken the
// isolation of the container, and parts of the machine that the container can access. It examines the options before
// the subcommand (such as run) and the options between the subcommand and the image.
func inspectContainer(name string, args []string) []Finding {
	all := []Finding{{RunsPackage, name +
		": it downloads an image and runs it (it is code execution, whatever the image is called)"}}
	g := optionGrammar{shortWithValue: "vehlmpuwacH", shortFlags: "itdPqD", longFlags: []string{
		"--rm", "--init", "--interactive", "--tty", "--detach", "--quiet", "--read-only", "--no-*", "--privileged",
		"--tls", "--tlsverify", "--debug", "--oom-kill-disable", "--sig-proxy", "--publish-all",
	}}
	running := false
	for rest, i := args, 0; ; {
		next := -1
		for _, w := range g.parse(rest) {
			w.index += i
			all = append(all, inspectContainerOption(name, running, w)...)
			if w.option != "" || w.maybeValue || running {
				continue
			}
			switch {
			case w.value == "container":
				next = w.index + 1
			case w.value == "run" || w.value == "create":
				next, running = w.index+1, true
			default:
				all = append(all, Finding{ExtraPrivileges,
					fmt.Sprintf("%s: argument %d has it do something else than run a container", name, w.index+1)})
			}
		}
		if next < 0 || next > len(args) {
			return uniqueFindings(all)
		}
		rest, i = args[next:], next
	}
}

func inspectContainerOption(name string, running bool, w argument) []Finding {
	yes := func(code, what string) []Finding { return []Finding{newFinding(code, name, w, what)} }
	switch value := strings.ToLower(w.value); {
	case w.option == "":
		return nil
	case w.isOption("--privileged") && w.joined && slices.Contains([]string{"false", "f", "0"}, value):
		return nil
	case w.isOption("--privileged"):
		return yes(ExtraPrivileges, "grants the container all rights over the machine")
	case strings.Contains(value, "docker.sock") || strings.Contains(value, "podman.sock") || strings.Contains(value,
		"containerd.sock"):
		return yes(HostFiles, "puts the engine's socket into the container: who has it is root of the machine")
	case w.isOption("-v", "--volume") && isHostMount(w.value), w.isOption("--mount") && isBindMount(value),
		w.isOption("--volumes-from"):
		return yes(HostFiles, "puts files of the machine into the container")
	case w.isOption("--pid", "--network", "--net", "--ipc", "--uts", "--userns", "--cgroupns") &&
		(value == "host" || strings.HasPrefix(value, "container:") || strings.HasPrefix(value, "ns:")):
		return yes(ExtraPrivileges, "has the container share the machine's, or another container's")
	case w.isOption("--security-opt") && strings.HasPrefix(value, "no-new-privileges"):
		return nil
	case w.isOption("--cap-add", "--device", "--device-cgroup-rule", "--security-opt", "--group-add", "--gpus",
		"--runtime", "--cgroup-parent", "--annotation", "--sysctl", "--use-api-socket"):
		return yes(ExtraPrivileges, "grants the container more rights than the default")
	case !running && w.isOption("-H", "--host", "-c", "--context", "--config", "--url", "--connection"):
		return yes(ExtraPrivileges, "runs the container on another engine")
	case w.isOption("--env-file", "--label-file", "--secret"):
		return yes(HostFiles, "makes the engine read a file of the machine")
	}
	return nil
}

// isHostMount reports whether the value of a volume option names a path of the machine and not a named volume of the
// engine.
func isHostMount(value string) bool {
	source, _, has := strings.Cut(value, ":")
	return has && (strings.ContainsAny(source, `/\.~$`) || len(source) == 1) // "c:\x:/x"
}

// isBindMount reports whether the value of a mount option may name a path of the machine. Only tmpfs, and volumes
// without device options, certainly do not.
func isBindMount(value string) bool {
	fields := strings.Split(value, ",")
	volume := slices.Contains(fields, "type=volume") && !strings.Contains(value, "device=") &&
		!strings.Contains(value, "volume-opt")
	return !volume && !slices.Contains(fields, "type=tmpfs")
}
