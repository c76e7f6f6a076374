// The REST package of the CSI driver for such appliances, unmodified, through the life of volumes.
//
// It is built beside the package's own files. CENOTE_ADDRESS, CENOTE_PASSWORD and CENOTE_CERTIFICATE say where the appliance
// is; the pool `tank` has the project `k8s`, the target group `tg` and the initiator group `worker-1`. The calls, and what
// is looked at in their answers, are those of the driver's controller (`pkg/service`).

package zfssarest

import (
	"context"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/oracle/zfssa-csi-driver/pkg/utils"
)

const gib = int64(1) << 30

// The driver's main program makes its loggers before anything else; without them it cannot log what it does.
func TestMain(m *testing.M) {
	utils.InitLogs("0", "zfssa-csi-driver", "test", "worker-1")
	os.Exit(m.Run())
}

func login(t *testing.T) *Token {
	t.Helper()
	// Port 215 is where the driver looks; the appliance of the test is elsewhere.
	httpTransport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, os.Getenv("CENOTE_ADDRESS"))
	}
	check(t, InitREST("127.0.0.1", os.Getenv("CENOTE_CERTIFICATE"), true))
	return LookUpToken(context.Background(), "root", os.Getenv("CENOTE_PASSWORD"))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, is bool, what string, found interface{}) {
	t.Helper()
	if !is {
		t.Fatalf("%s: %+v", what, found)
	}
}

func TestTheApplianceIsFound(t *testing.T) {
	ctx, token := context.Background(), login(t)
	services, err := GetServices(ctx, token)
	check(t, err)
	holds(t, len(*services) > 5, "it lists its services", services)
	pools, err := GetPools(ctx, token)
	check(t, err)
	holds(t, len(*pools) == 1 && (*pools)[0].Name == "tank", "it lists its pools", pools)
	pool, err := GetPool(ctx, token, "tank")
	check(t, err)
	holds(t, pool.Status == "online" && pool.Usage.Available > 0 && pool.ASN != "", "it says what room there is", pool)
	projects, err := GetProjects(ctx, token, "tank")
	check(t, err)
	holds(t, len(projects) > 0, "it lists its projects", projects)
	project, err := GetProject(ctx, token, "tank", "k8s")
	check(t, err)
	holds(t, project.SpaceAvailable > 0, "and the room in one", project)
	_, err = GetProject(ctx, token, "tank", "nowhere")
	holds(t, err != nil, "there is no such project", err)
	group, err := GetTargetGroup(ctx, token, "iscsi", "tg")
	check(t, err)
	holds(t, len(group.Targets) == 1, "a target group has its targets", group)
	property := Schema{Type: "String", Description: "Whose it is", Property: "owner"}
	_, err = CreateProperty(ctx, token, property)
	check(t, err)
	found, err := GetProperty(ctx, token, "owner")
	check(t, err)
	holds(t, found.Type == "String", "a property of one's own", found)
}

func TestABlockVolumeLives(t *testing.T) {
	ctx, token := context.Background(), login(t)
	parameters := map[string]string{
		"pool": "tank", "project": "k8s", "targetGroup": "tg", "blockSize": "8192", "volumeType": "thin",
	}
	_, lun, _, err := CreateLUN(ctx, token, "pvc-1", gib, &parameters)
	check(t, err)
	// The driver looks at the first number right away.
	holds(t, len(lun.AssignedNumber) == 1 && lun.VolumeSize == float64(gib), "a new LUN", lun)
	_, _, code, err := CreateLUN(ctx, token, "pvc-1", gib, &parameters)
	holds(t, err != nil && code == http.StatusConflict, "it is there already", code)

	groups, err := GetInitiatorGroupList(ctx, token, "tank", "k8s", "pvc-1")
	check(t, err)
	holds(t, len(groups) == 1 && groups[0] == MaskAll, "nobody sees it", groups)
	_, err = SetInitiatorGroupList(ctx, token, "tank", "k8s", "pvc-1", "worker-1")
	check(t, err)
	lun, _, err = GetLun(ctx, token, "tank", "k8s", "pvc-1")
	check(t, err)
	holds(t, len(lun.InitiatorGroup) == 1 && lun.InitiatorGroup[0] == "worker-1", "a node sees it", lun)
	holds(t, len(lun.AssignedNumber) == 1 && lun.AssignedNumber[0] >= 0, "under a number", lun)
	_, err = SetInitiatorGroupList(ctx, token, "tank", "k8s", "pvc-1", MaskAll)
	check(t, err)

	snapshot, _, err := CreateSnapshot(ctx, token, lun.Href, "snap-1")
	check(t, err)
	listed(t, ctx, token, lun.Href, snapshot)
	clone, _, err := CloneLunSnapshot(ctx, token, snapshot.Href, map[string]interface{}{
		"project": "k8s", "share": "pvc-2", "initiatorgroup": []string{MaskAll},
	})
	check(t, err)
	holds(t, clone.VolumeSize == float64(gib) && clone.InitiatorGroup[0] == MaskAll, "a clone", clone)
	dependents, err := GetSnapshotDependents(ctx, token, snapshot.Href)
	check(t, err)
	holds(t, len(*dependents) == 1 && (*dependents)[0].Share == "pvc-2", "the snapshot has a clone", dependents)
	again, _, err := GetSnapshot(ctx, token, lun.Href, "snap-1")
	check(t, err)
	holds(t, again.NumClones == 1, "and says so", again)
	// The driver never said that the clone may go.
	_, code, err = DeleteSnapshot(ctx, token, snapshot.Href)
	holds(t, err != nil && code == http.StatusForbidden, "which keeps it", code)

	all, err := GetLuns(ctx, token, "", "")
	check(t, err)
	inProject, err := GetLuns(ctx, token, "tank", "k8s")
	check(t, err)
	holds(t, len(all) == 2 && len(inProject) == 2, "both are listed", all)
	for _, name := range []string{"pvc-2", "pvc-1"} {
		if name == "pvc-1" {
			_, _, err = DeleteSnapshot(ctx, token, snapshot.Href)
			check(t, err)
		}
		_, _, err = DeleteLun(ctx, token, "tank", "k8s", name)
		check(t, err)
	}
	_, code, _ = GetLun(ctx, token, "tank", "k8s", "pvc-1")
	holds(t, code == http.StatusNotFound, "it is gone", code)
	_, code, err = DeleteLun(ctx, token, "tank", "k8s", "pvc-1")
	holds(t, err != nil && code == http.StatusNotFound, "and stays so", code)
}

// Of one volume and of the whole appliance, and by names that lead back to the volume.
func listed(t *testing.T, ctx context.Context, token *Token, href string, snapshot *Snapshot) {
	t.Helper()
	_, err := utils.DateToUnix(snapshot.Creation)
	check(t, err)
	_, err = utils.SnapshotIdStringFromHref("127.0.0.1", snapshot.Href)
	check(t, err)
	of, err := GetSnapshots(ctx, token, href)
	check(t, err)
	holds(t, len(of) == 1 && of[0].Href == snapshot.Href, "the volume's snapshots", of)
	all, err := GetSnapshots(ctx, token, "")
	check(t, err)
	holds(t, len(all) == 1 && all[0].Href == snapshot.Href, "all snapshots", all)
}

func TestAFileSystemLives(t *testing.T) {
	ctx, token := context.Background(), login(t)
	parameters := map[string]string{
		"pool": "tank", "project": "k8s", "rootUser": "nobody", "rootGroup": "other", "rootPermissions": "777",
		"shareNFS": "on", "restrictChown": "false",
	}
	made, _, err := CreateFilesystem(ctx, token, "pvc-3", gib, &parameters)
	check(t, err)
	holds(t, made.Quota == gib && made.MountPoint != "" && !made.ReadOnly, "a new file system", made)
	holds(t, made.RootPermissions == "777" && made.RootUser == "nobody", "its root is as it was said", made)
	holds(t, made.RootGroup != "" && made.RootGroup != "root" && !made.RestrictChown, "all of it", made)
	_, code, err := CreateFilesystem(ctx, token, "pvc-3", gib, &parameters)
	holds(t, err != nil && code == http.StatusConflict, "it is there already", code)
	grown, _, err := ModifyFilesystem(ctx, token, made.Href, &map[string]interface{}{
		"quota": 2 * gib, "reservation": 2 * gib,
	})
	check(t, err)
	holds(t, grown.Quota == 2*gib, "it grows", grown)

	snapshot, _, err := CreateSnapshot(ctx, token, made.Href, "snap-1")
	check(t, err)
	listed(t, ctx, token, made.Href, snapshot)
	clone, _, err := CloneFileSystemSnapshot(ctx, token, snapshot.Href, map[string]interface{}{
		"project": "k8s", "share": "pvc-4",
	})
	check(t, err)
	found, _, err := GetFilesystem(ctx, token, "tank", "k8s", "pvc-4")
	check(t, err)
	holds(t, found.RootPermissions == "777" && found.Href == clone.Href, "a clone begins as it was", found)
	all, err := GetFilesystems(ctx, token, "", "")
	check(t, err)
	inProject, err := GetFilesystems(ctx, token, "tank", "k8s")
	check(t, err)
	holds(t, len(all) == 2 && len(inProject) == 2, "both are listed", all)

	_, _, err = DeleteFilesystem(ctx, token, clone.Href)
	check(t, err)
	_, _, err = DeleteSnapshot(ctx, token, snapshot.Href)
	check(t, err)
	_, _, err = DeleteFilesystem(ctx, token, made.Href)
	check(t, err)
	_, code, _ = GetFilesystem(ctx, token, "tank", "k8s", "pvc-3")
	holds(t, code == http.StatusNotFound, "it is gone", code)
}
