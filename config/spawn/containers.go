package spawn

import (
	"fmt"
	"slices"
	"strings"
)

// judgeContainer judges a container engine's arguments: what takes the container's walls down, and what of the machine is put
// into it. Options are read wherever they stand before the image, and before the subcommand.
func judgeContainer(name string, args []string) []Finding {
	all := []Finding{{RunsPackage, name + ": it downloads an image and runs it (it is code execution, whatever the image is called)"}}
	g := grammar{valued: "vehlmpuwacH", alone: "itdPqD", long: []string{
		"--rm", "--init", "--interactive", "--tty", "--detach", "--quiet", "--read-only", "--no-*", "--privileged", "--tls", "--tlsverify", "--debug", "--oom-kill-disable", "--sig-proxy", "--publish-all",
	}}
	running := false
	for rest, i := args, 0; ; {
		next := -1
		for _, w := range g.read(rest) {
			w.at += i
			all = append(all, containerWord(name, running, w)...)
			if w.option != "" || w.doubtful || running {
				continue
			}
			switch {
			case w.value == "container":
				next = w.at + 1
			case w.value == "run" || w.value == "create":
				next, running = w.at+1, true
			default:
				all = append(all, Finding{Privileges, fmt.Sprintf("%s: argument %d has it do something else than run a container", name, w.at+1)})
			}
		}
		if next < 0 || next > len(args) {
			return distinct(all)
		}
		rest, i = args[next:], next
	}
}

func containerWord(name string, running bool, w word) []Finding {
	yes := func(code, what string) []Finding { return []Finding{finding(code, name, w, what)} }
	switch value := strings.ToLower(w.value); {
	case w.option == "":
		return nil
	case w.has("--privileged") && w.joined && slices.Contains([]string{"false", "f", "0"}, value):
		return nil
	case w.has("--privileged"):
		return yes(Privileges, "gives the container all rights over the machine")
	case strings.Contains(value, "docker.sock") || strings.Contains(value, "podman.sock") || strings.Contains(value, "containerd.sock"):
		return yes(HostFiles, "puts the engine's socket into the container: who has it is root of the machine")
	case w.has("-v", "--volume") && isHostMount(w.value), w.has("--mount") && isBind(value), w.has("--volumes-from"):
		return yes(HostFiles, "puts files of the machine into the container")
	case w.has("--pid", "--network", "--net", "--ipc", "--uts", "--userns", "--cgroupns") && (value == "host" || strings.HasPrefix(value, "container:") || strings.HasPrefix(value, "ns:")):
		return yes(Privileges, "has the container share the machine's, or another container's")
	case w.has("--security-opt") && strings.HasPrefix(value, "no-new-privileges"):
		return nil
	case w.has("--cap-add", "--device", "--device-cgroup-rule", "--security-opt", "--group-add", "--gpus", "--runtime", "--cgroup-parent", "--annotation", "--sysctl", "--use-api-socket"):
		return yes(Privileges, "gives the container more rights than it has by itself")
	case !running && w.has("-H", "--host", "-c", "--context", "--config", "--url", "--connection"):
		return yes(Privileges, "has another engine run it")
	case w.has("--env-file", "--label-file", "--secret"):
		return yes(HostFiles, "has it read a file of the machine")
	}
	return nil
}

// isHostMount says whether a volume is a path of the machine, and not one that the engine keeps by name.
func isHostMount(value string) bool {
	source, _, has := strings.Cut(value, ":")
	return has && (strings.ContainsAny(source, `/\.~$`) || len(source) == 1) // "c:\x:/x"
}

// isBind says whether a mount is of a path of the machine: any but those of which it is said that they are not.
func isBind(value string) bool {
	fields := strings.Split(value, ",")
	volume := slices.Contains(fields, "type=volume") && !strings.Contains(value, "device=") && !strings.Contains(value, "volume-opt")
	return !volume && !slices.Contains(fields, "type=tmpfs")
}
