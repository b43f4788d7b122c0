//! Checks the numbers that declared extensions forward calls to, after all their possible targets are declared.

use sidetone_store::StoreError;

use crate::fields::key_of;
use crate::provision::file::Declaration;
use crate::provision::work::Work;

impl<R> Work<'_, R> {
    /// Refuses numbers without a route.
    pub(super) async fn forward_targets(&mut self, declaration: &Declaration) -> Result<(), StoreError> {
        for organisation in &declaration.organisations {
            let Some((id, _)) = self.write.find_organisation(&organisation.name).await? else { continue };
            for extension in &organisation.extensions {
                let forwarding = extension.forwarding.as_ref();
                for (field, target) in forwarding.into_iter().flat_map(|forwarding| forwarding.targets()) {
                    let wrong = self.write.forwards_nowhere(id, &extension.number, target).await?;
                    if let Some(message) = wrong {
                        self.refuse(&key_of(&extension.path, "forwarding"), field, message.to_owned());
                    }
                }
            }
        }
        Ok(())
    }
}
