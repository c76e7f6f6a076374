//! The projects of files: `zfs project`, by the paths of mounted file systems.

use crate::appliance::Appliance;
use crate::error_text::{About, cannot};
use crate::pools::Access;
use api::{ApiError, ErrorKind, FileProject, ProjectOf, Reply, Result};
use std::path::Path;
use zpl::{Changes, flags};

impl Appliance {
    pub(crate) async fn file_project(&self, asked: FileProject) -> Result<Reply> {
        let path = Path::new(&asked.path);
        let nearest = self.0.mounts.below_which(path);
        let Some((dataset, within)) = nearest else {
            let message = format!("cannot open '{}': not a ZFS filesystem", asked.path);
            return Err(ApiError::new(ErrorKind::NotFound, message));
        };
        let failed =
            |doing: &str, e: &units::Error| cannot(About::Dataset, &format!("{doing} '{}'", asked.path), e);
        let changes = asked.id.is_some() || asked.inherits.is_some();
        let access = if changes { Access::Change } else { Access::Look };
        let open = self.pool_of(&dataset, access).await?;
        let found = async {
            let fs = open.pool.look_at_file_system(&dataset).await?;
            fs.resolve(&within, false).await
        };
        let node = found.await.map_err(|e| failed("open", &e))?;
        let stat = node.stat().await.map_err(|e| failed("open", &e))?;
        let old = ProjectOf { id: stat.project, inherits: stat.flags & flags::PROJINHERIT != 0 };
        if !changes {
            return Ok(Reply::ProjectOf(old));
        }
        let new =
            ProjectOf { id: asked.id.unwrap_or(old.id), inherits: asked.inherits.unwrap_or(old.inherits) };
        let bit = if new.inherits { flags::PROJINHERIT } else { 0 };
        let changed = async {
            let project =
                u32::try_from(new.id).map_err(|_| units::Error::invalid("no project has that number"))?;
            let changes = Changes {
                project: (new.id != old.id).then_some(project),
                flags: (new.inherits != old.inherits).then_some(stat.flags & !flags::PROJINHERIT | bit),
                ..Changes::default()
            };
            node.change(&changes).await
        };
        changed.await.map_err(|e| failed("set project of", &e))?;
        Ok(Reply::ProjectOf(new))
    }
}
