/** How a container says whose it is. An image's labels cannot override these. */
export const nodeLabel = 'berth.node';
export const backendLabel = 'berth.backend';
export const dataFolderLabel = 'berth.data-folder';
export const dataFolderIdLabel = 'berth.data-folder-id';
